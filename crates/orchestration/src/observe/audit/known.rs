//! Values that are known to be secrets, in the spellings in which they are passed on.

use std::{
    borrow::Cow,
    collections::BTreeSet,
    fmt::{self, Write as _},
    ops::Range,
    sync::{Arc, OnceLock},
};

use aho_corasick::AhoCorasick;

use super::redact::REDACTED;

/// Shorter values are placeholders (`ollama`, `none`), and words of every text too.
const MIN_SECRET_BYTES: usize = 8;

/// Longer ones of letters alone are keys.
const MOST_OF_A_WORD: usize = 15;

/// Texts that are struck out wherever they stand: as they are, as a JSON text, in an address, and as base64 or
/// hexadecimal, also within what was encoded together with more (`user:secret`). One of letters alone (`postgres`) is
/// found as a word, and not within one. Cheap to clone.
#[derive(Clone, Default)]
pub struct KnownSecrets(Arc<Known>);

#[derive(Default)]
struct Known {
    secrets: BTreeSet<String>,
    /// Made when something is looked for: most processes that know secrets never do.
    search: OnceLock<Search>,
}

#[derive(Default)]
struct Search {
    /// The longest first.
    spellings: Vec<String>,
    /// `None` without secrets.
    all: Option<AhoCorasick>,
}

impl KnownSecrets {
    /// Those that are known already and these. White space around one is none of it. Those shorter than 8 bytes are
    /// left out.
    #[must_use]
    pub fn with<S: Into<String>>(&self, secrets: impl IntoIterator<Item = S>) -> Self {
        let mut all = self.0.secrets.clone();
        for secret in secrets {
            let secret = secret.into();
            let secret = secret.trim();
            if secret.len() >= MIN_SECRET_BYTES {
                all.insert(secret.to_owned());
            }
        }
        Self(Arc::new(Known {
            secrets: all,
            search: OnceLock::new(),
        }))
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.secrets.len()
    }

    /// Bytes of the longest spelling.
    pub fn longest(&self) -> usize {
        self.search().spellings.first().map_or(0, String::len)
    }

    /// A text without them.
    pub fn strike_out<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.without(text, true)
    }

    /// The name of a field, a tool or a server without them. Words are left: a database's password that is its name
    /// too hides nothing there, and what a program reads again would not be itself any more.
    pub fn strike_out_of_name<'a>(&self, name: &'a str) -> Cow<'a, str> {
        self.without(name, false)
    }

    fn without<'a>(&self, text: &'a str, with_words: bool) -> Cow<'a, str> {
        if self.0.secrets.is_empty() {
            return Cow::Borrowed(text);
        }
        let Some(all) = &self.search().all else {
            return self.one_by_one(text, with_words);
        };
        if !all.is_match(text) {
            return Cow::Borrowed(text);
        }
        let Ok(found) = all.try_find_overlapping_iter(text) else {
            return self.one_by_one(text, with_words);
        };
        // Where two overlap, nothing of either stays.
        let found = found.filter(|found| {
            let is_word = self.is_word(found.pattern().as_usize());
            !is_word || (with_words && stands_alone(text, &found.range()))
        });
        let found = found.map(|it| it.range());
        let mut found: Vec<_> = found.collect();
        found.sort_unstable_by_key(|range| range.start);
        let mut clean = String::with_capacity(text.len());
        let mut until = 0;
        for range in found {
            if range.start >= until {
                clean.push_str(text.get(until..range.start).unwrap_or_default());
                clean.push_str(REDACTED);
            }
            until = until.max(range.end);
        }
        clean.push_str(text.get(until..).unwrap_or_default());
        Cow::Owned(clean)
    }

    /// For more secrets than can be looked for at once.
    fn one_by_one<'a>(&self, text: &'a str, with_words: bool) -> Cow<'a, str> {
        let mut clean = Cow::Borrowed(text);
        for (at, spelling) in self.search().spellings.iter().enumerate() {
            if (with_words || !self.is_word(at)) && clean.contains(spelling.as_str()) {
                clean = Cow::Owned(clean.replace(spelling.as_str(), REDACTED));
            }
        }
        clean
    }

    /// Whether a spelling is a secret that is a word, as far as one can see.
    fn is_word(&self, spelling: usize) -> bool {
        let spelling = self.search().spellings.get(spelling);
        spelling.is_some_and(|it| {
            it.len() <= MOST_OF_A_WORD
                && it
                    .bytes()
                    .all(|byte| byte.is_ascii_alphabetic() || byte == b'_')
                && self.0.secrets.contains(it)
        })
    }

    fn search(&self) -> &Search {
        self.0.search.get_or_init(|| {
            let mut spellings = BTreeSet::new();
            for secret in &self.0.secrets {
                spell(secret, &mut spellings);
            }
            let mut spellings: Vec<String> = spellings.into_iter().collect();
            spellings.sort_by_key(|spelling| std::cmp::Reverse(spelling.len()));
            Search {
                all: AhoCorasick::new(&spellings).ok(),
                spellings,
            }
        })
    }
}

/// Says how many there are, and none of them.
impl fmt::Debug for KnownSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KnownSecrets")
            .field("count", &self.count())
            .finish_non_exhaustive()
    }
}

/// Whether what stands there is a word of its own, and no part of a name.
fn stands_alone(text: &str, range: &Range<usize>) -> bool {
    let goes_on = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    let before = text
        .get(..range.start)
        .and_then(|it| it.chars().next_back());
    let after = text.get(range.end..).and_then(|it| it.chars().next());
    !before.is_some_and(goes_on) && !after.is_some_and(goes_on)
}

/// How a secret may be written. A key of letters and digits is the same in most.
fn spell(secret: &str, spellings: &mut BTreeSet<String>) {
    spellings.insert(secret.to_owned());
    let json = json(secret, Escapes::default());
    // A JSON text within a JSON text.
    spellings.insert(self::json(&json, Escapes::default()));
    spellings.insert(json);
    let kinds = [
        // `ensure_ascii` of Python, and what writes the digits large.
        (true, false, false, false),
        (true, false, false, true),
        // Go, for pages.
        (false, true, false, false),
        // PHP.
        (true, false, true, false),
    ];
    for (ascii, markup, slash, large) in kinds {
        let escapes = Escapes {
            ascii,
            markup,
            slash,
            large,
        };
        spellings.insert(self::json(secret, escapes));
    }
    for large in [true, false] {
        // Everything; paths; `encodeURIComponent`; a segment of a path; forms.
        for (kept, plus) in [
            ("-._~", false),
            ("-._~/", false),
            ("-._~!'()*", false),
            ("-._~!$&'()*+,;=:@", false),
            ("-._~", true),
            ("-._*", true),
        ] {
            spellings.insert(percent(secret, kept, plus, large));
        }
        spellings.insert(hexadecimal(secret, large));
    }
    for before in 0..3 {
        let standard = base64(secret, before);
        spellings.insert(standard.replace('+', "-").replace('/', "_"));
        spellings.insert(standard);
    }
}

/// What a writer of JSON escapes beyond what it must.
#[derive(Clone, Copy, Default)]
struct Escapes {
    ascii: bool,
    markup: bool,
    slash: bool,
    /// The digits above 9 in capitals.
    large: bool,
}

fn json(text: &str, escapes: Escapes) -> String {
    let mut written = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' => written.push_str("\\\""),
            '\\' => written.push_str("\\\\"),
            '\n' => written.push_str("\\n"),
            '\r' => written.push_str("\\r"),
            '\t' => written.push_str("\\t"),
            '\u{8}' => written.push_str("\\b"),
            '\u{c}' => written.push_str("\\f"),
            '/' if escapes.slash => written.push_str("\\/"),
            c if c < ' '
                || (escapes.ascii && !c.is_ascii())
                || (escapes.markup && matches!(c, '<' | '>' | '&')) =>
            {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    // Writing to a string does not fail.
                    let _ = if escapes.large {
                        write!(written, "\\u{unit:04X}")
                    } else {
                        write!(written, "\\u{unit:04x}")
                    };
                }
            }
            c => written.push(c),
        }
    }
    written
}

fn percent(text: &str, kept: &str, plus: bool, large: bool) -> String {
    let mut written = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b' ' if plus => written.push('+'),
            _ if byte.is_ascii_alphanumeric() || kept.as_bytes().contains(&byte) => {
                written.push(char::from(byte));
            }
            _ => {
                written.push('%');
                push_hexadecimal(&mut written, byte, large);
            }
        }
    }
    written
}

fn hexadecimal(text: &str, large: bool) -> String {
    let mut written = String::with_capacity(text.len() * 2);
    for byte in text.bytes() {
        push_hexadecimal(&mut written, byte, large);
    }
    written
}

fn push_hexadecimal(to: &mut String, byte: u8, large: bool) {
    // Writing to a string does not fail.
    let _ = if large {
        write!(to, "{byte:02X}")
    } else {
        write!(to, "{byte:02x}")
    };
}

/// The digits of base64 that a text alone decides where so many bytes (0, 1 or 2, and any number of times 3) stand
/// before it, and any after it.
fn base64(text: &str, before: usize) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    // A digit is 6 bits: the first ones belong to what stands before.
    let mut bits = 0_u32;
    let mut have = 0;
    let mut skip = match before {
        1 => 4,
        2 => 2,
        _ => 0,
    };
    let mut written = String::with_capacity(text.len() * 4 / 3 + 1);
    for byte in text.bytes() {
        bits = (bits << 8) | u32::from(byte);
        have += 8;
        if skip > 0 {
            have -= skip;
            bits &= (1 << have) - 1;
            skip = 0;
        }
        while have >= 6 {
            have -= 6;
            let digit = (bits >> have) & 63;
            written.push(char::from(DIGITS[digit as usize]));
        }
        bits &= (1 << have) - 1;
    }
    written
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn known(secret: &str) -> KnownSecrets {
        KnownSecrets::default().with([secret])
    }

    #[test]
    fn a_secret_is_found_as_others_write_it() {
        let secret = "Zq9/+\"x\\y Sécr3t<&>";
        let known = known(secret);
        for (written, expected) in [
            // Python: `quote(s, safe='')`, `quote(s)`, `quote_plus(s)`.
            (
                "?q=Zq9%2F%2B%22x%5Cy%20S%C3%A9cr3t%3C%26%3E&n=1",
                "?q=[redacted]&n=1",
            ),
            ("Zq9/%2B%22x%5Cy%20S%C3%A9cr3t%3C%26%3E", "[redacted]"),
            ("Zq9%2F%2B%22x%5Cy+S%C3%A9cr3t%3C%26%3E", "[redacted]"),
            ("Zq9%2f%2b%22x%5cy%20S%c3%a9cr3t%3c%26%3e", "[redacted]"),
            // `json.dumps(s)`, without `ensure_ascii`, and Go's.
            (
                r#"{"k": "Zq9/+\"x\\y S\u00e9cr3t<&>"}"#,
                r#"{"k": "[redacted]"}"#,
            ),
            (
                r#"{"k": "Zq9/+\"x\\y S\u00E9cr3t<&>"}"#,
                r#"{"k": "[redacted]"}"#,
            ),
            (
                r#"{"k": "Zq9/+\"x\\y Sécr3t<&>"}"#,
                r#"{"k": "[redacted]"}"#,
            ),
            (
                r#"{"k": "Zq9/+\"x\\y Sécr3t\u003c\u0026\u003e"}"#,
                r#"{"k": "[redacted]"}"#,
            ),
            (
                r#"{"k": "Zq9\/+\"x\\y S\u00e9cr3t<&>"}"#,
                r#"{"k": "[redacted]"}"#,
            ),
            (
                r#""{\"k\": \"Zq9/+\\\"x\\\\y Sécr3t<&>\"}""#,
                r#""{\"k\": \"[redacted]\"}""#,
            ),
            // `base64(s)`, `base64("u:" + s)`, `base64("me:" + s + "!")`: what is left of the digits beside it
            // belongs to its neighbours.
            ("WnE5LysieFx5IFPDqWNyM3Q8Jj4=", "[redacted]="),
            ("5a71392f2b22785c792053c3a9637233743c263e", "[redacted]"),
            ("5A71392F2B22785C792053C3A9637233743C263E", "[redacted]"),
            ("nothing of it: Zq9/", "nothing of it: Zq9/"),
        ] {
            let clean = known.strike_out(written);
            assert!(
                clean == expected || (expected.ends_with('=') && clean.contains("[redacted]")),
                "{written}: {clean}"
            );
        }
    }

    #[test]
    fn white_space_around_a_secret_is_none_of_it() {
        let known = known(" trailing-newline-77\n");
        assert_eq!(known.strike_out("<trailing-newline-77>"), "<[redacted]>");
        assert_eq!(KnownSecrets::default().with(["  seven77 \n"]).count(), 0);
    }

    #[test]
    fn nothing_stays_of_two_that_overlap() {
        let known = KnownSecrets::default().with(["abcd-fgh1", "gh1jklmno", "abcd-fgh"]);
        assert_eq!(known.strike_out("xabcd-fgh1jklmnoy"), "x[redacted]y");
        assert_eq!(
            known.strike_out("gh1jklmnoabcd-fgh"),
            "[redacted][redacted]"
        );
        assert_eq!(known.one_by_one("-abcd-fgh1-", true), "-[redacted]-");
    }

    #[test]
    fn a_secret_that_is_a_word_is_found_as_a_word() {
        let known = known("customer");
        for name in ["customer-service__get_customers", "customer_id", "Customer"] {
            assert_eq!(known.strike_out(name), name);
        }
        let url = "postgres://me:customer@host";
        assert_eq!(known.strike_out(url), "postgres://me:[redacted]@host");
        assert_eq!(known.strike_out("Y3VzdG9tZXI="), "[redacted]I=");
        assert_eq!(known.strike_out_of_name("customer"), "customer");
    }

    fn whole_base64(bytes: &[u8]) -> String {
        // Bits as text: another way than that of the code.
        let mut bits = String::new();
        for byte in bytes {
            let _ = write!(bits, "{byte:08b}");
        }
        while !bits.len().is_multiple_of(6) {
            bits.push('0');
        }
        let digits: Vec<char> = ('A'..='Z')
            .chain('a'..='z')
            .chain('0'..='9')
            .chain(['+', '/'])
            .collect();
        let sixes = bits.as_bytes().chunks(6);
        let sixes = sixes.map(|six| std::str::from_utf8(six).unwrap());
        sixes
            .map(|six| digits[usize::from_str_radix(six, 2).unwrap()])
            .collect()
    }

    proptest! {
        #[test]
        fn base64_of_more_is_found_at_every_place(
            before in "[ -~]{0,9}", secret in "[!-~]{8,24}", after in "[ -~]{0,9}",
        ) {
            let whole = whole_base64(format!("{before}{secret}{after}").as_bytes());
            let known = known(&secret);
            for written in [whole.replace('+', "-").replace('/', "_"), whole] {
                let clean = known.strike_out(&written);
                // At most one digit on each side holds bits of it, and of its neighbour.
                let beside = clean.len().saturating_sub(REDACTED.len());
                prop_assert!(clean.contains(REDACTED), "{} in {}", clean, written);
                prop_assert!(beside <= (before.len() + after.len()) * 4 / 3 + 4, "{} of {}", clean, written);
            }
        }

        #[test]
        fn what_serde_writes_is_found(secret in "\\PC{8,20}") {
            prop_assume!(secret.trim().len() >= 8);
            let known = known(&secret);
            let text = json!({"k": secret.trim()}).to_string();
            prop_assert_eq!(known.strike_out(&text), r#"{"k":"[redacted]"}"#);
        }
    }
}
