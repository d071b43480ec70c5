//! Rendering of an answer as text.

use std::fmt::Write as _;

use crate::AnswerItem;

/// The title of an artifact without a title.
pub(super) const UNTITLED: &str = "Untitled";

/// Renders items as Markdown: texts unchanged, artifacts as code blocks with a title.
///
/// ```
/// use switchboard_orchestration::{AnswerItem, strategy::formatter::render};
///
/// let items = [
///     AnswerItem::Text { text: "Two rows:".into() },
///     AnswerItem::Artifact {
///         artifact_type: "table".into(),
///         title: "Rows".into(),
///         content: "a | b".into(),
///         language: None,
///     },
/// ];
/// assert_eq!(render(&items), "Two rows:\n\n**Rows**\n\n```\na | b\n```");
/// ```
pub fn render(items: &[AnswerItem]) -> String {
    let mut answer = String::new();
    for item in items {
        match item {
            AnswerItem::Text { text } => {
                let text = text.trim();
                if !text.is_empty() {
                    answer.push_str(separator(&answer));
                    answer.push_str(text);
                }
            }
            AnswerItem::Artifact {
                artifact_type,
                title,
                content,
                language,
            } => {
                let content = content.trim_start_matches(['\n', '\r']).trim_end();
                if content.is_empty() {
                    continue;
                }
                let block = Block::new(artifact_type, title, language.as_deref());
                // The content must not end the fence.
                let marks = block.marks.max(longest_run(content) + 1);
                answer.push_str(separator(&answer));
                block.open(marks, &mut answer);
                // Writing to a string cannot fail.
                let _ = write!(answer, "{content}\n{}", "`".repeat(marks));
            }
        }
    }
    answer
}

/// Returns the separator between the rendered text and the next item.
pub(super) fn separator(rendered: &str) -> &'static str {
    if rendered.is_empty() { "" } else { "\n\n" }
}

/// The code block of an artifact.
#[derive(Debug)]
pub(super) struct Block {
    title: String,
    info: String,
    /// Minimum number of backticks of the fence.
    pub(super) marks: usize,
}

impl Block {
    pub(super) fn new(artifact_type: &str, title: &str, language: Option<&str>) -> Self {
        let kind = kind(artifact_type);
        let info = if takes_language(&kind) {
            language.map_or("", str::trim)
        } else if matches!(kind.as_str(), "table" | "chart" | "plain") {
            ""
        } else {
            &kind
        };
        let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
        Self {
            title: if title.is_empty() {
                UNTITLED.to_owned()
            } else {
                title
            },
            info: info
                .chars()
                .filter(|c| c.is_ascii_alphanumeric() || "+#.-_".contains(*c))
                .take(20)
                .collect(),
            // Markdown may contain code blocks.
            marks: if kind == "markdown" { 4 } else { 3 },
        }
    }

    pub(super) fn open(&self, marks: usize, text: &mut String) {
        let fence = "`".repeat(marks);
        // Writing to a string cannot fail.
        let _ = write!(text, "**{}**\n\n{fence}{}\n", self.title, self.info);
    }
}

/// Returns whether the info string of the code block is the language. Other artifacts have their
/// kind or an empty info string.
pub(super) fn takes_language(kind: &str) -> bool {
    !matches!(
        kind,
        "markdown" | "mermaid" | "html" | "svg" | "json" | "csv" | "table" | "chart" | "plain"
    )
}

/// Returns the short name of an artifact type: `application/vnd.mermaid` is `mermaid`,
/// `image/svg+xml` is `svg`.
pub(super) fn kind(artifact_type: &str) -> String {
    let last = artifact_type.rsplit(['/', '.']).next().unwrap_or_default();
    let word = last.split(['+', ';']).next().unwrap_or_default().trim();
    word.strip_prefix("x-").unwrap_or(word).to_ascii_lowercase()
}

fn longest_run(text: &str) -> usize {
    let mut longest = 0;
    let mut run = 0;
    for byte in text.bytes() {
        run = if byte == b'`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    // One or two backticks do not end a fence.
    if longest < 3 { 0 } else { longest }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn artifact(artifact_type: &str, content: &str, language: Option<&str>) -> AnswerItem {
        AnswerItem::Artifact {
            artifact_type: artifact_type.into(),
            title: "A  title\n".into(),
            content: content.into(),
            language: language.map(str::to_owned),
        }
    }

    #[test]
    fn artifacts_are_titled_code_blocks() {
        for (item, expected) in [
            (
                artifact("code", "fn main() {}\n", Some("rust")),
                "```rust\nfn main() {}\n```",
            ),
            (artifact("code", "\n  x", None), "```\n  x\n```"),
            (
                artifact("application/vnd.mermaid", "graph TD", None),
                "```mermaid\ngraph TD\n```",
            ),
            (
                artifact("image/svg+xml", "<svg/>", None),
                "```svg\n<svg/>\n```",
            ),
            (
                artifact("text/markdown", "```\nx\n```", None),
                "````markdown\n```\nx\n```\n````",
            ),
            (
                artifact("json", "{}", Some("javascript")),
                "```json\n{}\n```",
            ),
            (artifact("code", "{}", Some(" j`s\non")), "```json\n{}\n```"),
            (artifact("x-new", "{}", Some("c")), "```c\n{}\n```"),
            (artifact("table", "a | b", Some("c")), "```\na | b\n```"),
            (artifact("code", "````", None), "`````\n````\n`````"),
            (
                artifact("code", "a `b` ``c``", None),
                "```\na `b` ``c``\n```",
            ),
        ] {
            assert_eq!(render(&[item]), format!("**A title**\n\n{expected}"));
        }
    }

    #[test]
    fn items_are_separated_and_empty_items_are_omitted() {
        let text = |text: &str| AnswerItem::Text { text: text.into() };
        let items = [
            text(" a\n"),
            text(" "),
            artifact("code", " \n", None),
            text("b"),
        ];
        assert_eq!(render(&items), "a\n\nb");
        assert_eq!(render(&[]), "");
    }
}
