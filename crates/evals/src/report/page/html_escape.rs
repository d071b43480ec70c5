//! Escapes text for HTML.
//!
//! Besides markup, characters in text of models and tools are escaped if they are invisible or
//! change the order of other characters. They are shown as code points, such as `[U+202E]`.

use std::fmt::{self, Write};

use minijinja::{Error, Output, State, Value};

/// Writes a template value as escaped text. A string that is marked as safe, such as the output of
/// a macro, is written unchanged. Writes nothing for an undefined value or `none`.
pub(super) fn write_escaped_value(
    out: &mut Output<'_>,
    _: &State<'_, '_>,
    value: &Value,
) -> Result<(), Error> {
    if value.is_undefined() || value.is_none() {
        return Ok(());
    }
    let written = match value.as_str() {
        Some(text) if value.is_safe() => out.write_str(text),
        Some(text) => escape_html(text, out),
        None => escape_html(&value.to_string(), out),
    };
    written.map_err(Error::from)
}

/// Writes a text, escaped for HTML content and for attribute values in double quotes.
pub(super) fn escape_html(text: &str, out: &mut impl Write) -> fmt::Result {
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '&' => out.write_str("&amp;")?,
            '<' => out.write_str("&lt;")?,
            '>' => out.write_str("&gt;")?,
            '"' => out.write_str("&quot;")?,
            '\'' => out.write_str("&#39;")?,
            '\r' if characters.peek() == Some(&'\n') => {}
            '\n' | '\t' => out.write_char(c)?,
            c if is_hidden_character(c) => match char::from_u32(0x2400 + u32::from(c)) {
                // A control character is replaced by the visible Unicode symbol for it.
                Some(picture) if c < ' ' => out.write_char(picture)?,
                _ => write!(out, "[U+{:04X}]", u32::from(c))?,
            },
            c => out.write_char(c)?,
        }
    }
    Ok(())
}

/// Returns whether a character may mislead readers: it is invisible or reorders other characters.
fn is_hidden_character(c: char) -> bool {
    match c {
        // The zero-width non-joiner and joiner are necessary in some scripts and in emoji, so they
        // are not escaped.
        '\u{200c}' | '\u{200d}' => false,
        // Invisible characters, such as direction marks, zero-width spaces and tag characters, and
        // characters that change the direction of text.
        '\u{61c}'
        | '\u{180e}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e0fff}' => true,
        c => c.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn escaped(text: &str) -> String {
        let mut out = String::new();
        escape_html(text, &mut out).unwrap();
        out
    }

    #[test]
    fn markup_and_hidden_characters_are_escaped() {
        assert_eq!(
            escaped(r#"<a href="x" id='y'>&amp;</a>"#),
            "&lt;a href=&quot;x&quot; id=&#39;y&#39;&gt;&amp;amp;&lt;/a&gt;"
        );
        assert_eq!(escaped("a\r\nb\tc\rd\n"), "a\nb\tc␍d\n");
        assert_eq!(
            escaped("\0\u{1b}[31m\u{7f}\u{85}"),
            "␀␛[31m[U+007F][U+0085]"
        );
        assert_eq!(
            escaped("a\u{202e}b\u{2066}c\u{e0041}"),
            "a[U+202E]b[U+2066]c[U+E0041]"
        );
        assert_eq!(escaped("Ünï 日本 👩\u{200d}🚀"), "Ünï 日本 👩\u{200d}🚀");
    }

    proptest! {
        #[test]
        fn escaped_text_has_no_markup_and_no_hidden_characters(text in any::<String>()) {
            let text = escaped(&text);
            prop_assert!(!text.contains(['<', '>', '"', '\'']), "{text}");
            let is_shown = |c: char| !is_hidden_character(c) || c == '\n' || c == '\t';
            prop_assert!(text.chars().all(is_shown), "{text}");
            let entities = ["&amp;", "&lt;", "&gt;", "&quot;", "&#39;"];
            for (at, _) in text.match_indices('&') {
                let is_entity = entities.iter().any(|it| text[at..].starts_with(it));
                prop_assert!(is_entity, "{text}");
            }
        }
    }
}
