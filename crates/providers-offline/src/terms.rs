//! The words of a question by which tools are found.

use crate::{
    extract::{Found, Mention, Reading},
    text::stem,
    thesaurus::is_generic,
};

/// A word of a question that can tell a tool.
#[derive(Debug, Clone)]
pub(crate) struct Term {
    pub(crate) stem: String,
    /// How much it tells, 0 to 1.
    pub(crate) weight: f64,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// The words of a text that can tell a tool, in order.
pub(crate) fn terms(reading: &Reading<'_>) -> Vec<Term> {
    let mut terms: Vec<Term> = Vec::new();
    for (i, word) in reading.words.iter().enumerate() {
        let value = reading.mention_at(word.start).is_some_and(|mention| {
            word.end <= mention.end && !matches!(mention.found, Found::Name(_) | Found::Quoted(_))
        });
        if word.is_stop() || value || word.lower.starts_with(|c: char| c.is_ascii_digit()) {
            continue;
        }
        // "file a ticket": a verb.
        let verb = word.lower == "file"
            && reading
                .words
                .get(i + 1)
                .is_some_and(|next| matches!(next.lower.as_str(), "a" | "an" | "the" | "new"));
        let stem = if verb {
            "creat".to_owned()
        } else {
            word.stem.clone()
        };
        let weight = if is_generic(&stem) { 0.3 } else { 1.0 };
        let quoted = reading.is_quoted(word.start);
        terms.push(Term {
            stem,
            weight: if quoted { weight * 0.3 } else { weight },
            start: word.start,
            end: word.end,
        });
    }
    // "the file /etc/hosts" says itself that it is no folder.
    let says_file = reading.words.iter().any(|word| word.lower == "file");
    for mention in &reading.mentions {
        let Found::Path(path) = &mention.found else {
            continue;
        };
        for stem in implied_by_path(path, says_file) {
            terms.push(Term {
                stem: (*stem).to_owned(),
                weight: 0.4,
                start: mention.start,
                end: mention.end,
            });
        }
    }
    terms.extend(reckoned(reading));
    terms
}

/// What a sign between two numbers says in words: `19 + 23`.
fn reckoned(reading: &Reading<'_>) -> Option<Term> {
    let is_number = |mention: &Mention| matches!(mention.found, Found::Number(_));
    reading
        .mentions
        .windows(2)
        .filter(|pair| pair.iter().all(is_number))
        .find_map(|pair| {
            let [one, other] = pair else { return None };
            let word = match reading.slice(one.end, other.start).trim() {
                "+" | "plus" => "plus",
                "-" | "−" | "minus" => "subtract",
                "*" | "×" | "x" | "times" | "multiplied by" => "multiply",
                "/" | "÷" | "divided by" => "divide",
                _ => return None,
            };
            Some(Term {
                stem: stem(word),
                weight: 1.0,
                start: one.end,
                end: other.start,
            })
        })
}

/// What a path is a path of.
fn implied_by_path(path: &str, says_file: bool) -> &'static [&'static str] {
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    match name
        .rsplit_once('.')
        .map(|(_, extension)| extension.to_lowercase())
        .as_deref()
    {
        Some("png" | "jpg" | "jpeg" | "gif" | "webp" | "svg" | "bmp") => &["file", "imag", "media"],
        Some("mp3" | "wav" | "ogg" | "flac" | "mp4") => &["file", "audio", "media"],
        Some(_) => &["file", "text"],
        None if says_file => &["file", "text"],
        None => &["file", "directori"],
    }
}
