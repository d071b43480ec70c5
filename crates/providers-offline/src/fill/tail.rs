//! Free text: quotations, and what follows "about", "saying", a colon or the tool's name.

use serde_json::Value;

use super::{Places, convert::convert};
use crate::{
    extract::{Found, Reading},
    intent::is_request,
    schema::{Kind, Param, TextKind},
    text::Word,
    thesaurus::{is_generic, same},
};

/// What introduces a piece of free text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cue {
    /// "titled", "about", "subject".
    Title,
    /// "saying", "that", "with the text".
    Body,
    /// "for", "matching".
    Query,
    /// A colon.
    Colon,
    /// Quotation marks.
    Quote,
    /// The tool's own name.
    Name,
    /// A comma or the end of a sentence, after which somebody tells what it is about.
    Clause,
}

/// Clauses of a message that are looked at: somebody comes to the point.
const MOST_CLAUSES: usize = 8;
/// Words with which a clause begins that belongs to the request itself.
const NO_CLAUSE: &[&str] = &[
    "please", "thanks", "thank", "and", "or", "then", "but", "also", "with", "for", "to", "in",
    "at", "on", "of", "by", "from", "as", "if", "when", "unless", "until", "asap", "which", "who",
    "whose", "where", "not", "no", "i'd", "let", "hi", "hello", "hey", "dear", "ok", "okay",
];

/// With these the subject of a story begins.
const OWNERS: &[&str] = &[
    "the", "her", "his", "their", "my", "our", "its", "one", "a", "an", "some", "all", "both",
];
/// They are one.
const PERSONS: &[&str] = &["she", "he", "they"];
/// Verbs of a story that no ending shows.
const FINITE: &[&str] = &[
    "is", "are", "was", "were", "has", "have", "had", "does", "did", "can", "cannot", "will",
    "would", "could", "keeps", "came", "broke", "went", "got", "lost", "fell", "left", "sent",
    "found", "took", "paid", "gave", "kept", "saw", "felt", "became", "ran", "tore", "burnt",
    "froze", "shut", "blew", "sank", "stood", "hit", "met", "made", "bought", "sold", "hung",
    "began", "bent",
];
/// A clause with one of them is said to the planner.
const TO_THE_PLANNER: &[&str] = &[
    "you", "your", "yours", "me", "please", "ask", "asked", "know", "knows", "told", "said",
    "want", "wants", "wanted", "thanks", "kidding", "joking", "mind", "rest", "urgent", "soon",
];

#[derive(Debug, Clone, Copy)]
struct Piece {
    start: usize,
    end: usize,
    /// Where the words that introduce it begin.
    lead: usize,
    cue: Cue,
}

const TITLE_CUES: &[&str] = &[
    "titled",
    "entitled",
    "about",
    "regarding",
    "concerning",
    "called",
    "named",
    "subject",
    "title",
    "headline",
];
const BODY_CUES: &[&str] = &[
    "saying",
    "says",
    "say",
    "stating",
    "that",
    "because",
    "containing",
    "reading",
    "text",
    "content",
    "contents",
    "body",
    "message",
    "description",
    "details",
    "detail",
    "comment",
    "note",
];
const QUERY_CUES: &[&str] = &["for", "matching", "like", "query", "about"];
/// Cues that end another piece of text; the others are ordinary words there.
const STRONG_CUES: &[&str] = &[
    "titled",
    "entitled",
    "saying",
    "stating",
    "subject",
    "description",
    "details",
    "body",
];
/// Words between the tool's name and its text.
const FILLERS: &[&str] = &[
    "tool", "with", "to", "the", "text", "say", "saying", "on", "for", "me", "back", "after",
    "this", "word", "words", "phrase", "please", "a", "an", "of", "function", "string", "it",
    "and", "sentence",
];
/// Words that are no part of a text at its end.
const LOOSE_ENDS: &[&str] = &[
    "with", "and", "for", "as", "at", "to", "of", "in", "by", "from", "please", "on", "into",
    "then",
];

/// Fills free-text parameters.
pub(super) fn fill(places: &mut Places<'_>) {
    let pieces = pieces(places);
    let mut pairs: Vec<(f64, usize, usize)> = Vec::new();
    for (i, param) in places.open() {
        let Kind::Text(kind) = &param.kind else {
            continue;
        };
        if !param.choices.is_empty() {
            continue;
        }
        for (p, piece) in pieces.iter().enumerate() {
            let Some(score) = affinity(*kind, piece.cue) else {
                continue;
            };
            // What follows the name of a tool that changes things may be anything.
            let guess = piece.cue == Cue::Name && *kind == TextKind::Body;
            if guess && places.tool.writes && !is_only_text(places) {
                continue;
            }
            let own = places
                .reading
                .words_before(piece.start)
                .take(2)
                .any(|word| param.stems.contains(&word.stem) && word.start >= piece.lead);
            let near = if own { 3.0 } else { 0.0 };
            // What must be there goes before what may be there.
            let total = score + near + if param.required { 2.0 } else { 0.0 };
            if param.required || total >= 3.0 {
                pairs.push((total, i, p));
            }
        }
    }
    pairs.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2)));
    let mut used: Vec<(usize, usize)> = Vec::new();
    for (score, i, p) in pairs {
        let piece = pieces[p];
        let overlaps = used
            .iter()
            .any(|span| span.0 < piece.end && piece.start < span.1);
        if overlaps || places.values[i].is_some() {
            continue;
        }
        let text = places.reading.slice(piece.start, piece.end);
        if places.put(i, Value::from(text), (piece.lead, piece.end), score) {
            used.push((piece.lead, piece.end));
        }
    }
}

/// The whole of an answer as the text that was asked for.
pub(super) fn whole(places: &Places<'_>, param: &Param) -> Option<Value> {
    let Kind::Text(kind) = &param.kind else {
        return None;
    };
    affinity(*kind, Cue::Quote)?;
    let reading = places.reading;
    let quote = reading
        .mentions
        .iter()
        .find(|m| matches!(m.found, Found::Quoted(_)));
    if let Some(value) = quote.and_then(|mention| convert(mention, param, reading)) {
        return places.allows(param, &value).then_some(value);
    }
    let text = clean(
        reading.text.get(introduced(reading, param)..)?,
        Ending::OfSentence,
    );
    let text = text
        .trim_start_matches([' ', ':', ',', '\n'])
        .trim_end_matches('.');
    let text = if text.is_empty() {
        clean(reading.text, Ending::OfSentence).trim()
    } else {
        text
    };
    let value = Value::from(text);
    (!text.is_empty() && places.allows(param, &value)).then_some(value)
}

/// Where the text itself begins after "it is", "the subject should be" and the like.
fn introduced(reading: &Reading<'_>, param: &Param) -> usize {
    let mut named = false;
    for word in reading.words.iter().take(5) {
        let lower = word.lower.as_str();
        let own = param.stems.contains(&word.stem);
        named |= own || matches!(lower, "it" | "it's" | "that's");
        if lower == "it's" || lower == "that's" || (named && matches!(lower, "is" | "be" | "says"))
        {
            return word.end;
        }
        if !own
            && !matches!(
                lower,
                "it" | "the" | "its" | "my" | "should" | "please" | "use" | "as"
            )
        {
            break;
        }
    }
    0
}

/// Where the first piece of free text stands, for those who must keep out of it. It ends with its
/// sentence.
pub(super) fn free_text_begins(places: &Places<'_>) -> Option<(usize, usize)> {
    let has_text = places.tool.params.iter().any(|param| {
        matches!(
            &param.kind,
            Kind::Text(TextKind::Title | TextKind::Body | TextKind::Query)
        ) && param.choices.is_empty()
    });
    if !has_text {
        return None;
    }
    let cues = pieces(places)
        .into_iter()
        .filter(|piece| !matches!(piece.cue, Cue::Name | Cue::Clause));
    cues.min_by_key(|piece| piece.start).map(|piece| {
        (
            piece.start,
            sentence_end(places, piece.start, places.reading.text.len()),
        )
    })
}

/// The extent of a text that begins at `from` and goes no further than `until`.
pub(super) fn extent(
    places: &Places<'_>,
    from: usize,
    until: usize,
    after_sign: bool,
) -> (usize, usize) {
    let text = places.reading.text;
    let mut end = if is_only_text(places) {
        until
    } else {
        sentence_end(places, from, until)
    };
    // The text is never empty: its own first word does not end it.
    if let Some(second) = places.reading.words_after(from).nth(1) {
        let next = places.text_ends.partition_point(|&at| at < second.start);
        end = places.text_ends.get(next).map_or(end, |&at| at.min(end));
    }
    // What another parameter has taken ends the text, unless the text would begin with it.
    let cut = places
        .filling
        .spans
        .iter()
        .map(|span| span.0)
        .filter(|&start| start > from && start < end)
        .filter(|&start| !clean(&text[from..start], Ending::Cut).is_empty())
        .min();
    let natural = sentence_end(places, from, text.len());
    end = cut.unwrap_or(end);
    let ending = match (end < natural, after_sign) {
        (true, _) => Ending::Cut,
        (false, true) => Ending::OfOwn,
        (false, false) => Ending::OfSentence,
    };
    let raw = text.get(from..end).unwrap_or_default();
    let start = from
        + (raw.len()
            - raw
                .trim_start_matches([' ', ':', ',', '-', '\n', '\t'])
                .len());
    let cleaned = clean(text.get(start..end).unwrap_or_default(), ending);
    (start, start + cleaned.len())
}

/// Whether the tool takes one text and nothing else that must be given.
fn is_only_text(places: &Places<'_>) -> bool {
    let required: Vec<&Param> = places
        .tool
        .params
        .iter()
        .filter(|param| param.required)
        .collect();
    match required[..] {
        [one] => matches!(
            one.kind,
            Kind::Text(TextKind::Body | TextKind::Plain | TextKind::Query)
        ),
        _ => false,
    }
}

fn sentence_end(places: &Places<'_>, from: usize, until: usize) -> usize {
    let reading = places.reading;
    match reading.sentence_end(from) {
        Some(at) if at < until => {
            let told = reading.slice(at, at + 1);
            at + usize::from(matches!(told, "!" | "?"))
        }
        _ => until,
    }
}

/// The starts of the words that end a piece of free text before them, in order.
pub(super) fn text_ends(reading: &Reading<'_>) -> Vec<usize> {
    let ends = |(i, word): (usize, &Word)| {
        if !STRONG_CUES.contains(&word.lower.as_str()) {
            return None;
        }
        let before = i.checked_sub(1).and_then(|j| reading.words.get(j));
        let joined = reading.text[..word.start].trim_end().ends_with([',', ';'])
            || before.is_some_and(|before| matches!(before.lower.as_str(), "with" | "and"));
        let alone = matches!(
            word.lower.as_str(),
            "saying" | "titled" | "entitled" | "stating"
        );
        (joined || alone).then_some(word.start)
    };
    reading.words.iter().enumerate().filter_map(ends).collect()
}

/// Where a piece of text ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// Where something else begins.
    Cut,
    /// With the sentence that it is a part of.
    OfSentence,
    /// With itself, after a colon: its punctuation is the person's own.
    OfOwn,
}

/// Takes off what is no part of a text: spaces, loose connectives and closing punctuation.
fn clean(text: &str, ending: Ending) -> &str {
    let loose = if ending == Ending::Cut {
        LOOSE_ENDS
    } else {
        &["please"]
    };

    let mut text = text.trim_end();
    loop {
        let before = text;
        text = text.trim_end_matches([',', ';', ':', ' ', '-', '\n', '\t']);
        let last = text.rsplit(char::is_whitespace).next().unwrap_or_default();
        if text.len() > last.len() && loose.contains(&last.to_lowercase().as_str()) {
            text = text[..text.len() - last.len()].trim_end();
        }
        if text == before {
            break;
        }
    }
    if ending != Ending::OfOwn {
        text = text.trim_end_matches(['?', '.']);
    }
    text
}

fn affinity(kind: TextKind, cue: Cue) -> Option<f64> {
    use TextKind as T;
    Some(match (kind, cue) {
        (T::Title, Cue::Title | Cue::Quote)
        | (T::Body | T::Query | T::Plain, Cue::Quote)
        | (T::Query, Cue::Query) => 3.0,
        (T::Body, Cue::Body) => 3.25,
        (T::Body, Cue::Colon) | (T::Query, Cue::Title) => 2.75,
        (T::Title | T::Query, Cue::Colon) => 2.5,
        (T::Title, Cue::Body) => 2.0,
        (T::Query | T::Plain, Cue::Body)
        | (T::Body, Cue::Title)
        | (T::Plain, Cue::Title | Cue::Colon) => 1.5,
        (T::Name, Cue::Title) => 1.25,
        (T::Body | T::Query, Cue::Name) => 1.0,
        (T::Title | T::Plain, Cue::Name) => 0.75,
        (T::Title | T::Body, Cue::Clause) => 0.5,
        _ => return None,
    })
}

fn pieces(places: &Places<'_>) -> Vec<Piece> {
    let reading = places.reading;
    let mut pieces: Vec<Piece> = Vec::new();
    for (m, mention) in reading.mentions.iter().enumerate() {
        let Found::Quoted(inner) = &mention.found else {
            continue;
        };
        if places.taken[m] {
            continue;
        }
        let open = reading
            .slice(mention.start, mention.end)
            .chars()
            .next()
            .map_or(1, char::len_utf8);
        let start = mention.start + open;
        let lead = reading
            .words_before(mention.start)
            .next()
            .map_or(mention.start, |word| word.start);
        pieces.push(Piece {
            start,
            end: start + inner.len(),
            lead,
            cue: Cue::Quote,
        });
    }
    let has_quote = !pieces.is_empty();
    for word in &reading.words {
        if reading.is_quoted(word.start)
            || places.is_used(word.start, word.end)
            || places.tool.name.contains(&word.stem)
            || is_to_the_planner(reading, word.start)
        {
            continue;
        }
        let cue = if TITLE_CUES.contains(&word.lower.as_str()) {
            Cue::Title
        } else if BODY_CUES.contains(&word.lower.as_str()) {
            Cue::Body
        } else if QUERY_CUES.contains(&word.lower.as_str()) {
            Cue::Query
        } else {
            continue;
        };
        add(places, &mut pieces, word.start, word.end, cue);
    }
    for (at, _) in reading.text.match_indices(':') {
        let follows = reading.text[at + 1..].starts_with(char::is_whitespace);
        if follows && !reading.is_quoted(at) {
            add(places, &mut pieces, at, at + 1, Cue::Colon);
        }
    }
    if !has_quote && let Some((lead, from)) = after_name(places) {
        add(places, &mut pieces, lead, from, Cue::Name);
    }
    clauses(places, &mut pieces);
    // A piece that begins with a quotation is that quotation.
    let quotes: Vec<Piece> = pieces
        .iter()
        .filter(|piece| piece.cue == Cue::Quote)
        .copied()
        .collect();
    pieces.retain(|piece| {
        piece.cue == Cue::Quote
            || !quotes
                .iter()
                .any(|quote| quote.start <= piece.start + 1 && piece.start < quote.end)
    });
    pieces
}

/// What is told after the request: "Open a case for client 7, her order never came".
fn clauses(places: &Places<'_>, pieces: &mut Vec<Piece>) {
    let reading = places.reading;
    let takes_it = |param: &Param| {
        let is_text = matches!(param.kind, Kind::Text(TextKind::Title | TextKind::Body));
        param.required && is_text && param.choices.is_empty()
    };
    if !places.open().any(|(_, param)| takes_it(param)) {
        return;
    }
    let names = places.tool.telling_name();
    let mut words = reading.words.iter();
    let Some(request) = words.find(|word| names.contains(&&word.stem)) else {
        return;
    };
    let marks = reading
        .text
        .match_indices([',', '.', '!', ';', '\u{2013}', '\u{2014}']);
    let marks = marks.map(|(at, mark)| (at, at + mark.len()));
    let begins = |&(at, from): &(usize, usize)| {
        let follows = reading.text[from..].starts_with(char::is_whitespace);
        follows && at >= request.end && !reading.is_quoted(at)
    };
    for (at, from) in marks.filter(begins).take(MOST_CLAUSES) {
        let Some(first) = reading.words_after(from).next() else {
            return;
        };
        let (start, end) = extent(places, from, reading.text.len(), false);
        let words = || {
            reading
                .words_after(start)
                .take_while(|word| word.end <= end)
        };
        let says_something = words().count() >= 3
            && words().any(|word| !word.is_stop() && !places.tool.name.contains(&word.stem));
        // What begins with an argument, with a preposition or with another request is no story.
        let is_other = NO_CLAUSE.contains(&first.lower.as_str())
            || places.is_used(start, first.end)
            || is_request(&Reading::new(reading.slice(start, end), reading.today));
        if says_something && !is_other && is_story(places, start, end) {
            add(places, pieces, at, from, Cue::Clause);
            return;
        }
    }
}

/// Whether a clause tells what happened to something: a subject with a verb, and nothing that is said to the planner.
fn is_story(places: &Places<'_>, start: usize, end: usize) -> bool {
    let reading = places.reading;
    let mut words = reading
        .words_after(start)
        .take_while(|word| word.end <= end);
    let Some(first) = words.next() else {
        return false;
    };
    let rest: Vec<&Word> = words.collect();
    let first = first.lower.as_str();
    let owned = OWNERS.contains(&first);
    let verb = rest.iter().enumerate().any(|(i, word)| {
        let lower = word.lower.as_str();
        // "My trusted colleague" is nobody's story.
        let is_past = lower.len() > 4 && lower.ends_with("ed") && (i > 0 || !owned);
        FINITE.contains(&lower) || lower.ends_with("n't") || is_past
    });
    let is_own = |word: &&Word| {
        let mut own = places.tool.params.iter().flat_map(|param| &param.stems);
        TO_THE_PLANNER.contains(&word.lower.as_str()) || own.any(|stem| *stem == word.stem)
    };
    let asks = reading
        .sentence_end(start)
        .is_some_and(|at| reading.slice(at, at + 1) == "?");
    (owned || PERSONS.contains(&first)) && verb && !asks && !rest.iter().any(is_own)
}

/// Whether a word that introduces a text belongs to a question after the request, or to what is to be asked first.
fn is_to_the_planner(reading: &Reading<'_>, at: usize) -> bool {
    let sentence = reading.sentence_end(at);
    let asks = sentence.is_some_and(|end| reading.slice(end, end + 1) == "?");
    let is_later = sentence != reading.sentence_end(0);
    let mut before = reading.words_before(at).take(4);
    let asks_me = before.any(|word| word.lower == "me")
        && before.next().is_some_and(|word| word.lower == "ask");
    asks_me || (asks && is_later)
}

fn add(places: &Places<'_>, pieces: &mut Vec<Piece>, lead: usize, from: usize, cue: Cue) {
    let until = places.reading.text.len();
    let mut from = from;
    // "saying that it is late": it says that it is late.
    if cue == Cue::Body
        && let Some(next) = places.reading.words_after(from).next()
        && next.lower == "that"
        && places.reading.slice(from, next.start).trim().is_empty()
    {
        from = next.end;
    }
    let (start, end) = extent(places, from, until, cue == Cue::Colon);
    // After the tool's name anything may follow: another argument, or a mere "it up".
    let words = || {
        places
            .reading
            .words_after(start)
            .take_while(|word| word.start < end)
    };
    let is_none = cue == Cue::Name
        && (places.is_used(start, start + 1)
            || (!is_only_text(places) && words().all(Word::is_stop)));
    if end > start && !is_none {
        pieces.push(Piece {
            start,
            end,
            lead,
            cue,
        });
    }
}

/// The text after the first run of words from the tool's name: "echo hello", "use the echo tool to
/// say hello".
fn after_name(places: &Places<'_>) -> Option<(usize, usize)> {
    let reading = places.reading;
    let names = places.tool.telling_name();
    let knows = |stem: &str| names.iter().any(|name| same(name, stem));
    let verb = |stem: &str| {
        places
            .tool
            .name
            .iter()
            .any(|name| name == stem && is_generic(name))
    };
    let first = reading
        .words
        .iter()
        .position(|word| knows(&word.stem))
        .or_else(|| reading.words.iter().position(|word| verb(&word.stem)))?;
    let lead = reading.words.get(first)?.start;
    let mut from = reading.words.get(first)?.end;
    for word in reading.words.iter().skip(first + 1) {
        let joined = reading
            .slice(from, word.start)
            .trim_matches([' ', '-', '`', '_', '"'])
            .is_empty();
        let part = FILLERS.contains(&word.lower.as_str()) || places.tool.name.contains(&word.stem);
        // "echo echo" echoes.
        if !joined || !part || (knows(&word.stem) && names.len() == 1) {
            break;
        }
        from = word.end;
    }
    // "which files are in it" gives no text after the name.
    let next = reading.words_after(from).next()?;
    let copula = matches!(
        next.lower.as_str(),
        "is" | "are" | "was" | "were" | "do" | "does" | "has" | "have" | "can"
    );
    (!copula).then_some((lead, from))
}
