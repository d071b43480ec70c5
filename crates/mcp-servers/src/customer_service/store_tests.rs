use super::*;

async fn store() -> Store {
    Store::open(None).await.unwrap()
}

async fn number(store: &Store, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql)
        .fetch_one(&store.pool)
        .await
        .unwrap()
}

#[tokio::test]
async fn the_seed_is_plausible() {
    let store = store().await;
    for (sql, expected) in [
        ("SELECT COUNT(*) FROM customers", 48),
        ("SELECT COUNT(DISTINCT name) FROM customers", 48),
        ("SELECT COUNT(*) FROM purchases", 145),
        (
            "SELECT SUM(amount_cents) FROM purchases WHERE customer_id = 42",
            53_019,
        ),
        ("SELECT COUNT(*) FROM purchases WHERE customer_id = 42", 6),
        // Somebody has bought nothing yet.
        (
            "SELECT COUNT(*) FROM customers WHERE customer_id NOT IN (SELECT customer_id FROM purchases)",
            2,
        ),
        // Nothing was bought by somebody who was no customer yet, and no date is made up.
        (
            "SELECT COUNT(*) FROM purchases JOIN customers USING (customer_id) WHERE purchased_on < joined_on",
            0,
        ),
        (
            "SELECT COUNT(*) FROM customers WHERE date(joined_on) IS NOT joined_on",
            0,
        ),
        (
            "SELECT COUNT(*) FROM purchases WHERE date(purchased_on) IS NOT purchased_on",
            0,
        ),
        // No address of a real person: RFC 2606.
        (
            "SELECT COUNT(*) FROM customers WHERE email NOT LIKE '%@example.com' AND email NOT LIKE '%@example.org' AND email NOT LIKE '%.example'",
            0,
        ),
        ("SELECT COUNT(*) FROM support_tickets", 0),
    ] {
        assert_eq!(number(&store, sql).await, expected, "{sql}");
    }
    assert_eq!(store.customer_ids().await.unwrap(), Some((1, 48)));
}

#[tokio::test]
async fn the_number_of_a_deleted_ticket_is_not_given_again() {
    let store = store().await;
    let create = || store.create_ticket(42, "Broken", None, Priority::High);
    assert_eq!(create().await.unwrap().unwrap().ticket_id, 1);
    sqlx::query("DELETE FROM support_tickets")
        .execute(&store.pool)
        .await
        .unwrap();
    assert_eq!(create().await.unwrap().unwrap().ticket_id, 2);
}

#[tokio::test]
async fn a_ticket_for_nobody_is_not_written() {
    let store = store().await;
    let ticket = store
        .create_ticket(49, "Broken", None, Priority::Low)
        .await
        .unwrap();
    assert!(ticket.is_none());
    assert_eq!(
        number(&store, "SELECT COUNT(*) FROM support_tickets").await,
        0
    );
}

#[tokio::test]
async fn text_is_stored_as_it_is() {
    let store = store().await;
    let text = "Robert'); DROP TABLE support_tickets; -- ☕";
    store
        .create_ticket(42, text, Some(text), Priority::Normal)
        .await
        .unwrap()
        .unwrap();
    let row: (String, String) = sqlx::query_as("SELECT subject, description FROM support_tickets")
        .fetch_one(&store.pool)
        .await
        .unwrap();
    assert_eq!(row, (text.to_owned(), text.to_owned()));
}

#[tokio::test]
async fn without_customers_nothing_is_promised() {
    let store = store().await;
    for table in ["DELETE FROM purchases", "DELETE FROM customers"] {
        sqlx::query(table).execute(&store.pool).await.unwrap();
    }
    assert_eq!(store.customer_ids().await.unwrap(), None);
    assert_eq!(store.latest_join().await.unwrap(), None);
    let (customers, matching) = store.recent_customers(10, None).await.unwrap();
    assert!(customers.is_empty() && matching == 0);
    assert!(store.account(42).await.unwrap().is_none());
    let error = super::super::no_such_customer(&store, 42).await;
    assert_eq!(error.to_string(), "There are no customers at all.");
}
