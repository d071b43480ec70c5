//! The scripted conversation that the benchmark runs with the baseline and with Switchboard.

pub(crate) const QUESTION: &str = "What is the state of order 4711, and when will it be here?";
pub(crate) const ARGUMENTS: &str =
    r#"{"text": "state of order 4711", "limit": 10, "tags": ["open", "late"]}"#;

/// Returns the text of the tool result in the scripted conversation, about 2,000 characters.
pub(crate) fn tool_result_text() -> String {
    "Order 4711 of customer 42 is late: it left the warehouse on Monday.\n".repeat(30)
}

/// Returns the words of the final answer in the scripted conversation.
pub(crate) fn answer_words() -> Vec<&'static str> {
    let sentence = "The order left the warehouse on Monday and will be there on Thursday. ";
    sentence.split_inclusive(' ').cycle().take(91).collect()
}
