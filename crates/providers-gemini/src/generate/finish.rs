//! Why an answer ended, wire → domain.

use switchboard_domain::FinishReason;

/// The word of an answer that goes on when it is asked for again with its token.
pub(crate) const CONTINUATION: &str = "CONTINUATION";

/// The reason in the API's word. `STOP` with calls is brought in line with the output later.
pub(crate) fn finish_reason(word: &str) -> FinishReason {
    match word {
        "STOP" => FinishReason::Stop,
        // No word of the API, but of servers that imitate it.
        "FUNCTION_CALL" => FinishReason::ToolUse,
        // Only where it cannot be continued: it is the API's own limit per request.
        "MAX_TOKENS" | CONTINUATION => FinishReason::Length,
        "SAFETY"
        | "RECITATION"
        | "LANGUAGE"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION"
        | "MODEL_ARMOR"
        | "ESCALATION" => FinishReason::ContentFilter,
        "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" => FinishReason::MalformedToolCall,
        other => FinishReason::Other(other.to_owned()),
    }
}

/// Whether the word says anything: proxies send the zero value of the enum in the middle of an
/// answer.
pub(crate) fn is_said(word: &str) -> bool {
    !word.is_empty() && word != "FINISH_REASON_UNSPECIFIED"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_of_the_sdk_is_known_or_survives() {
        use FinishReason::{ContentFilter, Length, MalformedToolCall, Stop, ToolUse};
        let table = [
            (Stop, &["STOP"][..]),
            (ToolUse, &["FUNCTION_CALL"]),
            (Length, &["MAX_TOKENS", "CONTINUATION"]),
            (
                ContentFilter,
                &[
                    "SAFETY",
                    "RECITATION",
                    "LANGUAGE",
                    "BLOCKLIST",
                    "PROHIBITED_CONTENT",
                    "SPII",
                    "IMAGE_SAFETY",
                    "IMAGE_PROHIBITED_CONTENT",
                    "IMAGE_RECITATION",
                    "MODEL_ARMOR",
                    "ESCALATION",
                ],
            ),
            (
                MalformedToolCall,
                &["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"],
            ),
        ];
        for (expected, words) in table {
            for word in words {
                assert_eq!(finish_reason(word), expected, "{word}");
            }
        }
        for word in [
            "OTHER",
            "IMAGE_OTHER",
            "NO_IMAGE",
            "TOO_MANY_TOOL_CALLS",
            "MISSING_THOUGHT_SIGNATURE",
            "MALFORMED_RESPONSE",
            "PUP_LIMITED_DISABLED",
            "SOMETHING_NEW",
        ] {
            assert_eq!(finish_reason(word), FinishReason::Other(word.to_owned()));
        }
        assert!(!is_said("") && !is_said("FINISH_REASON_UNSPECIFIED") && is_said("OTHER"));
    }
}
