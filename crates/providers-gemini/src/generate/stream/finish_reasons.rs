//! Converts the API's finish reasons.

use switchboard_domain::FinishReason;

/// The finish reason of a response whose answer continues in the next response.
pub(crate) const CONTINUATION: &str = "CONTINUATION";

/// Converts the API's finish reason. If the answer has tool calls, the decoder later changes `STOP`
/// to tool use.
pub(crate) fn finish_reason(word: &str) -> FinishReason {
    match word {
        "STOP" => FinishReason::Stop,
        // The API itself never sends `FUNCTION_CALL`, but compatible servers do.
        "FUNCTION_CALL" => FinishReason::ToolUse,
        // `CONTINUATION` is the final reason only if no continuation was requested. The answer then
        // ended at the API's limit per request.
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

/// Returns whether `word` is an actual finish reason. Some proxies send the placeholder
/// `FINISH_REASON_UNSPECIFIED` before the end of an answer.
pub(crate) fn is_finish_reason(word: &str) -> bool {
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
        assert!(
            !is_finish_reason("")
                && !is_finish_reason("FINISH_REASON_UNSPECIFIED")
                && is_finish_reason("OTHER")
        );
    }
}
