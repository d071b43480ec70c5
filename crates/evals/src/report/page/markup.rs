//! Markup that is written once, from its beginning to its end.
//!
//! Only literals of this program become markup: [`Markup::raw`] takes nothing else. Whatever was read or measured goes
//! through [`Markup::text`] or [`Markup::show`], which escape it so that it is text, also within the quotes of an
//! attribute. A library of templates would do the same for markup, but not for what else is hostile: characters that
//! change the order of others, or that nobody sees.

use std::fmt::{self, Write as _};

use crate::report::metric::grouped;

/// Bytes of one text that a page shows.
const TEXT: usize = 64 << 10;

/// Characters of a name that a page shows.
const NAME: usize = 200;

/// A page that is being written.
#[derive(Debug, Default)]
pub(super) struct Markup {
    out: String,
}

impl Markup {
    /// Markup of this program's own.
    pub(super) fn raw(&mut self, markup: &'static str) -> &mut Self {
        self.out.push_str(markup);
        self
    }

    /// Text, at most 64 KiB of it; what is cut off is said.
    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        self.excerpt(text, 0)
    }

    /// Text, of which so many bytes were left out before.
    pub(super) fn excerpt(&mut self, text: &str, left_out: u64) -> &mut Self {
        let end = text.floor_char_boundary(TEXT);
        escape(&text[..end], &mut self.out);
        let cut = left_out.saturating_add((text.len() - end) as u64);
        if cut > 0 {
            self.show(format_args!("… ({cut} more bytes)"));
        }
        self
    }

    /// A name, or its beginning.
    pub(super) fn name(&mut self, name: &str) -> &mut Self {
        match name.char_indices().nth(NAME) {
            Some((end, _)) => {
                escape(&name[..end], &mut self.out);
                self.out.push('…');
            }
            None => escape(name, &mut self.out),
        }
        self
    }

    /// Anything that can be shown, such as numbers and [`format_args!`]; whole.
    pub(super) fn show(&mut self, value: impl fmt::Display) -> &mut Self {
        // Strings take everything, so that only the value itself could fail.
        let _ = write!(Escaping(&mut self.out), "{value}");
        self
    }

    /// A number of things, as `1 call` or `2 calls`.
    pub(super) fn many(&mut self, number: u64, one: &'static str, more: &'static str) -> &mut Self {
        self.show(grouped(&number.to_string())).raw(" ");
        self.raw(if number == 1 { one } else { more })
    }

    /// Bytes that were written.
    pub(super) fn len(&self) -> usize {
        self.out.len()
    }

    pub(super) fn into_string(self) -> String {
        self.out
    }
}

struct Escaping<'a>(&'a mut String);

impl fmt::Write for Escaping<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        escape(text, self.0);
        Ok(())
    }
}

/// Writes a text so that it is text in the contents of an element and in an attribute with quotes. What is not seen, or
/// changes the order of others, is shown by its number.
fn escape(text: &str, out: &mut String) {
    out.reserve(text.len());
    let mut from = 0;
    let mut rest = text.char_indices().peekable();
    while let Some((at, c)) = rest.next() {
        let entity = match c {
            '&' => Some("&amp;"),
            '<' => Some("&lt;"),
            '>' => Some("&gt;"),
            '"' => Some("&quot;"),
            '\'' => Some("&#39;"),
            // A line's end is one, whoever wrote it.
            '\r' if rest.peek().is_some_and(|(_, next)| *next == '\n') => Some(""),
            '\n' | '\t' | ' '..='\u{7e}' => None,
            c if is_hidden(c) => {
                out.push_str(&text[from..at]);
                from = at + c.len_utf8();
                match char::from_u32(0x2400 + u32::from(c)) {
                    // The pictures of control characters.
                    Some(picture) if c < ' ' => out.push(picture),
                    _ => {
                        let _ = write!(out, "[U+{:04X}]", u32::from(c));
                    }
                }
                continue;
            }
            _ => None,
        };
        if let Some(entity) = entity {
            out.push_str(&text[from..at]);
            out.push_str(entity);
            from = at + c.len_utf8();
        }
    }
    out.push_str(&text[from..]);
}

/// Whether a character is not seen, or changes the order in which others are.
fn is_hidden(c: char) -> bool {
    match c {
        // Joiners are part of scripts and of emoji.
        '\u{200c}' | '\u{200d}' => false,
        // Marks of direction, spaces without width; letters in disguise, by which models are told what people do not
        // see.
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

    fn shown(text: &str) -> String {
        let mut page = Markup::default();
        page.text(text);
        page.into_string()
    }

    #[test]
    fn what_is_markup_elsewhere_is_text_here() {
        assert_eq!(
            shown(r#"<a href="x" id='y'>&amp;</a>"#),
            "&lt;a href=&quot;x&quot; id=&#39;y&#39;&gt;&amp;amp;&lt;/a&gt;"
        );
        assert_eq!(shown("a\r\nb\tc\rd\n"), "a\nb\tc␍d\n");
        assert_eq!(shown("\0\u{1b}[31m\u{7f}\u{85}"), "␀␛[31m[U+007F][U+0085]");
        assert_eq!(
            shown("a\u{202e}b\u{2066}c\u{e0041}"),
            "a[U+202E]b[U+2066]c[U+E0041]"
        );
        assert_eq!(shown("Ünï 日本 👩\u{200d}🚀"), "Ünï 日本 👩\u{200d}🚀");
    }

    #[test]
    fn what_is_long_is_cut_between_characters_and_says_so() {
        let long = "é".repeat(TEXT);
        let text = shown(&long);
        assert!(text.starts_with("éé") && text.ends_with("é… (65536 more bytes)"));
        let mut page = Markup::default();
        page.excerpt("ab", 7)
            .raw("|")
            .name(&"é".repeat(NAME + 1))
            .raw("|")
            .name("n");
        let expected = format!("ab… (7 more bytes)|{}…|n", "é".repeat(NAME));
        assert_eq!(page.into_string(), expected);
    }

    proptest! {
        #[test]
        fn no_text_has_markup_or_what_is_not_seen(text in any::<String>(), with in "[<>&'\"\\r\\n\u{202e}\0-\u{1f}]{0,8}") {
            let mut page = Markup::default();
            page.text(&text).show(&with).name(&with);
            let page = page.into_string();
            prop_assert!(!page.contains(['<', '>', '"', '\'']), "{page}");
            prop_assert!(!page.chars().any(|c| is_hidden(c) && c != '\n' && c != '\t'), "{page}");
            // Every ampersand is one of ours.
            for (at, _) in page.match_indices('&') {
                let is_ours = ["&amp;", "&lt;", "&gt;", "&quot;", "&#39;"].iter().any(|it| page[at..].starts_with(it));
                prop_assert!(is_ours, "{page}");
            }
        }
    }
}
