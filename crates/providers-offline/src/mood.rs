//! Whether a text asks for something to be done, or only speaks of it: forbids it, reports it, asks about it, makes a condition
//! of it, or takes it back. Nothing is changed for a text that only speaks of it.

use crate::{
    catalog::Tool,
    extract::Reading,
    intent::is_changing,
    text::Word,
    thesaurus::{alike, same},
};

/// Words before the first that tells what a clause is.
const FILLERS: &[&str] = &[
    "please", "hi", "hello", "hey", "ok", "okay", "now", "and", "then", "so", "well", "kindly",
    "also", "thanks", "but", "just", "oh", "yes", "no", "actually", "sorry", "wait", "hmm", "ah",
    "only", "or", "however",
];
/// They say that something is not, or is not to be.
const NEGATORS: &[&str] = &[
    "not", "never", "without", "cannot", "neither", "nor", "avoid", "refrain", "nobody", "against",
    "instead", "hardly",
];
/// With these begins a question that is no wish, whatever comes then.
const WHETHER: &[&str] = &[
    "is", "are", "was", "were", "do", "does", "did", "has", "have", "had", "why", "who", "when",
    "where", "should", "shall", "may", "might", "am",
];
/// With these a question begins.
const QUESTIONS: &[&str] = &[
    "what", "what's", "which", "who", "who's", "whose", "when", "where", "how", "why", "is", "are",
    "was", "were", "can", "could", "do", "does", "did", "will", "would", "has", "have", "had",
    "may", "might", "should", "shall", "am", "must",
];
/// What follows them is asked about, or told of, and not asked for.
const ABOUT: &[&str] = &[
    "how",
    "what",
    "why",
    "whether",
    "when",
    "if",
    "unless",
    "safe",
    "explain",
    "describe",
    "know",
    "wonder",
    "wondering",
    "suppose",
    "imagine",
    "assume",
    "difference",
    "pretend",
    "consequences",
];
/// Somebody says that it be done.
const WISHES: &[&str] = &[
    "want", "need", "like", "wish", "must", "please", "let", "let's", "i'd", "we'd", "help",
    "want's",
];
/// Who does what is told of.
const SUBJECTS: &[&str] = &[
    "i",
    "we",
    "he",
    "she",
    "they",
    "it",
    "you",
    "there",
    "somebody",
    "someone",
    "everybody",
    "nobody",
    "i'm",
    "i've",
    "we've",
    "you've",
    "they've",
    "she's",
    "he's",
    "i'll",
];
/// Conditions, at the beginning of a clause or within a request.
const CONDITIONS: &[&str] = &["if", "unless", "until", "provided", "providing", "assuming"];
const WHEN: &[&str] = &["if", "when", "after", "once"];
/// From these words on a sentence is what somebody wants said.
const TEXT: &[&str] = &[
    "saying",
    "stating",
    "titled",
    "entitled",
    "about",
    "regarding",
    "concerning",
    "because",
    "that",
    "subject",
    "called",
    "named",
];
/// Forms of verbs of change that no ending shows.
const PAST: &[(&str, &str)] = &[
    ("sent", "send"),
    ("wrote", "write"),
    ("written", "write"),
    ("paid", "pay"),
    ("bought", "buy"),
    ("made", "make"),
    ("drew", "draw"),
    ("drawn", "draw"),
];

/// With them a clause takes back what was asked for.
const REVOKING: &[&[&str]] = &[
    &["nevermind"],
    &["never", "mind"],
    &["kidding"],
    &["joking"],
    &["i'm", "kidding"],
    &["i'm", "joking"],
    &["i", "am", "kidding"],
    &["i", "am", "joking"],
    &["i", "was", "kidding"],
    &["i", "was", "joking"],
    &["i", "changed"],
    &["i", "have", "changed"],
    &["i've", "changed"],
    &["we", "changed"],
    &["i", "take", "that"],
    &["i", "take", "it"],
    &["on", "second"],
    &["hold", "on"],
    &["hold", "off"],
    &["not"],
    &["don't"],
    &["don\u{2019}t"],
    &["do", "not"],
];
/// Verbs that do so with what is in the other list.
const LEAVING: &[&str] = &[
    "forget", "cancel", "scrap", "scratch", "ignore", "undo", "drop", "stop",
];
const LEFT: &[&str] = &["it", "that", "this", "about", "everything"];
/// What the planner should do before.
const ASKING_BACK: &[&[&str]] = &[
    &["ask", "me"],
    &["tell", "me"],
    &["remind", "me"],
    &["check"],
    &["confirm"],
    &["wait"],
    &["in", "case"],
];

/// Verbs of change that are things as often.
const NOUNS: &[&str] = &[
    "order",
    "orders",
    "file",
    "files",
    "book",
    "books",
    "post",
    "posts",
    "mail",
    "mails",
    "email",
    "emails",
    "store",
    "stores",
    "stage",
    "stages",
    "schedule",
    "schedules",
    "change",
    "changes",
    "set",
    "sets",
];

/// What a clause does with what it speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mood {
    /// Asks for it.
    Wanted,
    /// Forbids it.
    Forbidden,
    /// Tells of it, or asks about it.
    SpokenOf,
}

/// Whether a word says what is spoken of.
type Meant<'a> = dyn Fn(&Word) -> bool + 'a;

/// A clause outside quotations.
#[derive(Debug)]
struct Clause<'r> {
    words: Vec<&'r Word>,
    /// Words up to here are none of a text that somebody wants said.
    own: usize,
    /// Its sentence ends with a question mark.
    asks: bool,
}

/// Whether a text asks for what a tool does: what it forbids, tells of, asks about or takes back is not done.
pub(crate) fn asks_for(reading: &Reading<'_>, tool: &Tool) -> bool {
    let clauses = clauses(reading);
    // "If she has paid, cancel it": whether she has is not known.
    let depends = clauses.first().is_some_and(|clause| {
        let said = clause.words.iter().map(|word| word.lower.as_str());
        let mut said = said.skip_while(|word| FILLERS.contains(word));
        let (first, next) = (
            said.next().unwrap_or_default(),
            said.next().unwrap_or_default(),
        );
        (CONDITIONS.contains(&first) && !matches!(next, "possible" | "you"))
            || matches!(first, "before" | "once")
    });
    if depends || is_taken_back(&clauses) {
        return false;
    }
    let first = tool.name.first();
    let is_act = |word: &Word| {
        let base = base(word);
        let own = first.is_some_and(|own| own == base || alike(own).iter().any(|it| it == base));
        own || (is_verb_of_change(word) && tool.speaks_of(base))
    };
    let is_name = |word: &Word| {
        tool.telling_name()
            .iter()
            .any(|name| same(name, base(word)))
    };
    let is_change = |word: &Word| is_verb_of_change(word);
    // A noun of the tool's name has no past: "a meeting" is none.
    let kinds: [(&Meant<'_>, bool); 4] = [
        (&is_act, true),
        (&is_name, false),
        (&is_change, true),
        (&|_| true, false),
    ];
    for (kind, is_verb) in kinds {
        let moods: Vec<Mood> = clauses
            .iter()
            .filter_map(|clause| mood(clause, kind, is_verb))
            .collect();
        if !moods.is_empty() {
            // What comes after a request may be its text: "… for client 7, she could not cancel her booking".
            let wanted = moods.iter().position(|mood| *mood == Mood::Wanted);
            let forbidden = moods.iter().position(|mood| *mood == Mood::Forbidden);
            return wanted.is_some_and(|wanted| forbidden.is_none_or(|at| wanted < at));
        }
    }
    false
}

/// Whether a text takes back, puts off or makes a condition of what it asked for before.
pub(crate) fn takes_back(reading: &Reading<'_>) -> bool {
    is_taken_back(&clauses(reading))
}

/// Whether a text forbids something and asks for nothing else: "Don't list the boats."
pub(crate) fn only_forbids(reading: &Reading<'_>) -> bool {
    let clauses = clauses(reading);
    let mut told = clauses.iter().filter(|clause| !clause.words.is_empty());
    told.next()
        .is_some_and(|clause| !clause.asks && is_forbidding(clause))
        && told.next().is_none()
}

/// Whether a part of a text forbids or excepts something that stands there.
pub(crate) fn excludes(reading: &Reading<'_>, at: usize) -> bool {
    let clauses = clauses(reading);
    clauses.iter().any(is_forbidding)
        || clauses.iter().any(|clause| {
            let holds = clause.words.last().is_some_and(|word| at < word.end)
                && clause.words.first().is_some_and(|word| word.start <= at);
            let mut before = clause.words.iter().take_while(|word| word.start < at);
            let word = |word: &&Word| {
                is_negator(word)
                    || matches!(
                        word.lower.as_str(),
                        "except"
                            | "ignore"
                            | "skip"
                            | "excluding"
                            | "besides"
                            | "apart"
                            | "other"
                            | "but"
                            | "omit"
                    )
            };
            holds && before.any(word)
        })
}

fn mood(clause: &Clause<'_>, is_meant: &Meant<'_>, is_verb: bool) -> Option<Mood> {
    let own = clause.words.get(..clause.own)?;
    let at = own.iter().position(|word| is_meant(word))?;
    let act = own.get(at)?;
    // "I cannot get in, please open …", "… so please open": what is before is the reason.
    let from = own[..at]
        .iter()
        .rposition(|word| word.lower == "please")
        .map_or(0, |please| please + 1);
    let before = &own[from..at];
    let lower = |i: usize| before.get(i).map(|word| word.lower.as_str());
    let opening = own
        .iter()
        .map(|word| word.lower.as_str())
        .find(|word| !FILLERS.contains(word))
        .unwrap_or_default();
    let forgets = before
        .iter()
        .any(|word| matches!(word.lower.as_str(), "forget" | "hesitate"));
    let none_of = own.get(at + 1).is_some_and(|next| {
        matches!(
            next.lower.as_str(),
            "no" | "nothing" | "none" | "neither" | "nobody"
        )
    });
    let no_need = before.iter().enumerate().any(|(i, word)| {
        word.lower == "no"
            && matches!(
                lower(i + 1),
                Some("need" | "reason" | "longer" | "way") | None
            )
    });
    if none_of || no_need || !forgets && before.iter().any(|word| is_negator(word)) {
        return Some(Mood::Forbidden);
    }
    let has = |list: &[&str]| {
        before
            .iter()
            .any(|word| list.contains(&word.lower.as_str()))
    };
    let polite = before.windows(2).any(|pair| {
        matches!(pair[0].lower.as_str(), "can" | "could" | "would" | "will")
            && pair[1].lower == "you"
    });
    let wish = polite || from > 0 || has(WISHES);
    let condition = own.iter().enumerate().any(|(i, word)| {
        let next = own.get(i + 1).map(|word| word.lower.as_str());
        let after = own.get(i + 2).map(|word| word.lower.as_str());
        CONDITIONS.contains(&word.lower.as_str())
            && !matches!(
                (next, after),
                (Some("possible" | "necessary"), _)
                    | (
                        Some("you"),
                        Some("can" | "could" | "would" | "please" | "like" | "may" | "don't")
                    )
            )
    });
    // "All of them but the first": which ones are left is more than is worked out.
    let excepts = own.iter().skip(at + 1).any(|word| {
        matches!(
            word.lower.as_str(),
            "except" | "excepting" | "excluding" | "besides" | "but" | "apart"
        )
    });
    // "Cancel it once she has agreed" is not for now.
    let later = own.windows(2).skip(at).any(|pair| {
        let is_when = matches!(
            pair[0].lower.as_str(),
            "when" | "once" | "after" | "before" | "only"
        );
        is_when
            && (SUBJECTS.contains(&pair[1].lower.as_str())
                || WHEN.contains(&pair[1].lower.as_str()))
    });
    let is_form =
        is_verb && is_form(act) && !has(&["want", "need", "like", "mind", "i'd", "get", "have"]);
    let asks_whether = (clause.asks && WHETHER.contains(&opening))
        || before.windows(2).any(|pair| {
            pair[0].lower == "you"
                && matches!(pair[1].lower.as_str(), "want" | "like" | "need")
                && QUESTIONS.contains(&opening)
        });
    let is_question = clause.asks || QUESTIONS.contains(&opening);
    // "They want to delete it" is nobody's wish who speaks here.
    let tells = SUBJECTS.contains(&opening) && !(wish && is_speaker(opening)) && from == 0;
    let spoken = has(ABOUT)
        || condition
        || later
        || excepts
        || is_form && !polite_form(own, from)
        || tells
        || is_question && !wish;
    // "Should I …" is no wish, whatever is said with it.
    let asks_own = matches!(lower(0), Some("should" | "may" | "shall"));
    Some(if spoken || asks_own || asks_whether {
        Mood::SpokenOf
    } else {
        Mood::Wanted
    })
}

fn is_speaker(word: &str) -> bool {
    matches!(word, "i" | "we" | "you" | "i'll" | "i'm" | "i've" | "we've")
}

/// "Please have it deleted".
fn polite_form(own: &[&Word], from: usize) -> bool {
    from > 0 || own.first().is_some_and(|word| word.lower == "please")
}

/// Whether a clause after the first takes back, puts off or makes a condition of what was asked for.
fn is_taken_back(clauses: &[Clause<'_>]) -> bool {
    clauses.iter().skip(1).any(|clause| {
        let all: Vec<&str> = clause
            .words
            .iter()
            .map(|word| word.lower.as_str())
            .collect();
        let skip = all.iter().take_while(|word| FILLERS.contains(word)).count();
        let said = all.get(skip..).unwrap_or_default();
        let begins = |list: &[&[&str]]| list.iter().any(|phrase| said.starts_with(phrase));
        let leaves_it = said.first().is_some_and(|word| LEAVING.contains(word))
            && said.get(1).is_some_and(|word| LEFT.contains(word));
        let revokes = leaves_it || said == ["stop"] || begins(REVOKING);
        let filler = |word: &str| all.get(..skip).unwrap_or_default().contains(&word);
        // "Wait, …", "no, …", "actually …": what follows is something else than what was asked for.
        let halts = said.is_empty() && (filler("wait") || filler("no") || filler("actually"))
            || filler("wait")
            || (filler("actually") && clause.own > 0);
        let when = said.first().zip(said.get(1)).is_some_and(|(when, who)| {
            matches!(*when, "after" | "before" | "once" | "when")
                && (SUBJECTS.contains(who) || matches!(*who, "the" | "in"))
        });
        let depends = said.first().is_some_and(|word| CONDITIONS.contains(word))
            && !begins(&[&["if", "possible"], &["if", "necessary"], &["if", "you"]]);
        let puts_off = when || depends || begins(ASKING_BACK);
        // In what is to be said anything may stand, but for what takes everything back.
        let is_text = clause.own == 0;
        if is_text {
            begins(&[
                &["never", "mind"],
                &["nevermind"],
                &["forget", "it"],
                &["forget", "that"],
            ])
        } else {
            revokes || halts || puts_off
        }
    })
}

/// "Don't …", "please never …", "but do not …".
fn is_forbidding(clause: &Clause<'_>) -> bool {
    let mut said = clause
        .words
        .iter()
        .map(|word| word.lower.as_str())
        .skip_while(|word| FILLERS.contains(word));
    matches!(
        (said.next(), said.next()),
        (Some("don't" | "dont" | "never" | "not"), _)
            | (
                Some("do" | "you"),
                Some("not" | "never" | "mustn't" | "shouldn't")
            )
    )
}

fn is_negator(word: &Word) -> bool {
    let lower = word.lower.as_str();
    NEGATORS.contains(&lower)
        || lower.ends_with("n't")
        || lower.ends_with("n\u{2019}t")
        || lower == "dont"
}

/// The stem of the verb that a word is a form of.
fn base(word: &Word) -> &str {
    let irregular = PAST.iter().find(|(form, _)| *form == word.lower);
    irregular.map_or(word.stem.as_str(), |(_, verb)| verb)
}

/// Whether a word is a verb of change, and not more often a thing.
fn is_verb_of_change(word: &Word) -> bool {
    !NOUNS.contains(&word.lower.as_str()) && is_changing(base(word))
}

/// Whether a verb is said as what was done or is being done: "opened", "opening", "opens".
fn is_form(word: &Word) -> bool {
    let ends = |ending: &str| word.lower.ends_with(ending) && !word.stem.ends_with(ending);
    PAST.iter().any(|(form, _)| *form == word.lower)
        || ends("ed")
        || ends("ing")
        || (ends("s") && is_changing(&word.stem))
}

/// The clauses of a text, at commas, dashes and the ends of sentences.
fn clauses<'r>(reading: &'r Reading<'_>) -> Vec<Clause<'r>> {
    let mut clauses: Vec<Clause<'r>> = Vec::new();
    let mut edge = 0;
    let mut is_text = false;
    let mut sentence = None;
    for word in reading
        .words
        .iter()
        .filter(|word| !reading.is_quoted(word.start))
    {
        let gap = reading.slice(edge, word.start);
        let end = reading.sentence_end(word.start);
        let is_new_sentence = sentence != Some(end);
        if is_new_sentence {
            is_text = false;
            sentence = Some(end);
        }
        let marks =
            gap.contains([',', ';', '!', '(', ')', '\u{2013}', '\u{2014}']) || gap.contains(" - ");
        if is_new_sentence || marks || clauses.is_empty() {
            let asks = end.is_some_and(|end| reading.slice(end, end + 1) == "?");
            clauses.push(Clause {
                words: Vec::new(),
                own: 0,
                asks,
            });
        }
        is_text |= gap.contains(": ") || gap.contains(":\n");
        edge = word.end;
        if let Some(clause) = clauses.last_mut() {
            clause.words.push(word);
            is_text |= clause.own > 1 && TEXT.contains(&word.lower.as_str());
            clause.own += usize::from(!is_text);
        }
    }
    clauses
}
