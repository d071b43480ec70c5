//! The suites that ship with the program.

/// Names and texts of the suites that ship with the program. They use bundled MCP servers.
pub(crate) const SHIPPED: [(&str, &str); 1] = [(
    "ten-scenarios",
    include_str!("../../evals/ten-scenarios.yaml"),
)];

#[cfg(test)]
mod tests {
    use super::{super::suites::parse_suite, SHIPPED};

    #[test]
    fn answers_of_the_ten_are_told_apart() {
        let (name, text) = SHIPPED[0];
        let (suite, _) = parse_suite(name, text, false).unwrap();
        for (scenario, turn, answer, is_right) in [
            ("The value of an account", 0, "It is 530.19 EUR.", true),
            ("The value of an account", 0, "**€530,19**", true),
            ("The value of an account", 0, "It is 1530.19 EUR.", false),
            ("What code says about a number", 0, "34.90 euros", true),
            ("What code says about a number", 0, "3_490 cents", true),
            ("What code says about a number", 0, "134.90 euros", false),
            ("What is known already", 0, "125.38", true),
            ("What is known already", 0, "2125.38", false),
            (
                "What is known already",
                1,
                "Yes, 125.38 is more than 100.",
                true,
            ),
            ("What is known already", 1, "It exceeds 100 euros.", true),
            (
                "What is known already",
                1,
                "No, 125.38 is not more than 100 euros",
                false,
            ),
            (
                "What is known already",
                1,
                "It doesn't exceed 100 euros; it would have to be over 125.",
                false,
            ),
            ("One of those that were listed", 1, "288.00 EUR.", true),
            ("One of those that were listed", 1, "It is 288.", true),
            ("One of those that were listed", 1, "1288", false),
            ("One of those that were listed", 1, "2,880", false),
            ("One of those that were listed", 1, "288.50 EUR", false),
        ] {
            let mut all = suite.scenarios.iter();
            let of = all.find(|it| it.name == scenario).unwrap();
            let faults = of.turns[turn].answer.failed_checks(answer, &[]);
            assert_eq!(faults.is_empty(), is_right, "{answer}: {faults:?}");
        }
    }
}
