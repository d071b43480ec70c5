use super::*;

#[test]
fn values_that_the_model_has_not_read_are_made_up() {
    let known = KnownValues::from_text(
        "Order ORD-1042 of ann@acme.org, customer 42.\n\
         {\"at\":\"2026-11-22T10:30:00Z\",\"ids\":[101,102],\"sum\":1234.5,\"cents\":3_490,\"fee\":5}",
    );
    for (answer, made_up) in [
        ("ord-1042 for Ann@acme.org (mailto:ann@acme.org).", &[][..]),
        ("**1,234.50 EUR**, €1234,5, 3490, 5.00, 101, 42nd", &[]),
        ("On 22/11/2026 at 10:30, on November 22, 2026", &[]),
        // One digit is not a value.
        ("2 of 3 items, step 4", &[]),
        (
            "ORD-1043, ORD-104 and CURIE:1042",
            &["ORD-1043", "ORD-104", "CURIE:1042"],
        ),
        (
            "$129.00, $129.00 or 9,042, 24.5",
            &["129.00", "9,042", "24.5"],
        ),
        ("2027-11-22, bob@acme.org", &["2027-11-22", "bob@acme.org"]),
    ] {
        assert_eq!(known.find_made_up_values(answer), made_up, "{answer}");
    }
}

#[test]
fn made_up_values_are_limited() {
    let known = KnownValues::from_text("");
    let long = format!("12{}", "é".repeat(99));
    let many: Vec<String> = (100..300).map(|it| it.to_string()).collect();
    let found = known.find_made_up_values(&format!("{long} {}", many.join(" ")));
    assert_eq!((found.len(), found[0].len()), (100, 100));
}
