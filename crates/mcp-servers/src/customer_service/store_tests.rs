use serde_json::json;

use super::*;

async fn number(database: &Database, sql: &'static str) -> i64 {
    let read = database.read_in_transaction(move |transaction| {
        Ok(transaction.query_row(sql, [], |row| row.get(0))?)
    });
    read.await.unwrap()
}

#[tokio::test]
async fn the_seed_data_is_consistent() {
    let database = Database::open(&LAYOUT, None).await.unwrap();
    for (sql, expected) in [
        ("SELECT COUNT(*) FROM customers", 48),
        ("SELECT COUNT(DISTINCT name) FROM customers", 48),
        ("SELECT COUNT(*) FROM purchases", 145),
        (
            "SELECT SUM(amount_cents) FROM purchases WHERE customer_id = 42",
            53_019,
        ),
        ("SELECT COUNT(*) FROM purchases WHERE customer_id = 42", 6),
        // Customers without a purchase exist.
        (
            "SELECT COUNT(*) FROM customers WHERE customer_id NOT IN (SELECT customer_id FROM purchases)",
            2,
        ),
        // Every purchase is later than the customer's first day, and every date is valid.
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
        // Addresses use only the domains reserved by RFC 2606.
        (
            "SELECT COUNT(*) FROM customers WHERE email NOT LIKE '%@example.com' AND email NOT LIKE '%@example.org' AND email NOT LIKE '%.example'",
            0,
        ),
        ("SELECT COUNT(*) FROM support_tickets", 0),
    ] {
        assert_eq!(number(&database, sql).await, expected, "{sql}");
    }
}

#[tokio::test]
async fn ticket_numbers_are_not_reused() {
    let database = Database::open(&LAYOUT, None).await.unwrap();
    let tool = support_ticket_tool(database.clone());
    for number in [1, 2] {
        let arguments = json!({"customer_id": 42, "subject": "Broken"});
        let created = tool.call(arguments.as_object().unwrap().clone()).await;
        assert_eq!(created.structured_content.unwrap()["ticket_id"], number);
        let sql = "DELETE FROM support_tickets";
        let delete =
            database.write_in_transaction(move |transaction| Ok(transaction.execute_batch(sql)?));
        delete.await.unwrap();
    }
}
