//! Whether a text asks for something to be done, or only speaks of it: forbids it, reports it, asks about it, makes a condition
//! of it, or takes it back. Nothing is changed for a text that only speaks of it.

use crate::{
    act::{acts, name_of_act},
    catalog::Tool,
    extract::Reading,
    intent::is_changing,
    text::Word,
    thesaurus::{alike, same},
};

/// Words before the first that tells what a clause is.
pub(crate) const FILLERS: &[&str] = &[
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
/// With them is turned round what comes after them, or what somebody did.
const REVERSING: &[&str] = &[
    "undo", "revert", "reverse", "rollback", "retract", "withdraw", "abort", "scrap", "cancel",
    "stop", "halt", "prevent", "skip", "ignore", "forget",
];
/// The same in two words.
const REVERSING_PAIRS: &[(&str, &str)] = &[
    ("roll", "back"),
    ("take", "back"),
    ("call", "off"),
    ("hold", "off"),
    ("put", "off"),
];
/// Only with these before a colon somebody says what is to be done.
const REQUESTS: &[&str] = &[
    "task",
    "tasks",
    "todo",
    "request",
    "action",
    "command",
    "job",
    "step",
    "following",
    "thing",
    "things",
    "next",
    "first",
    "finally",
    "urgent",
    "important",
    "asap",
    "want",
    "need",
    "like",
    "must",
    "let",
    "let's",
    "go",
    "ahead",
    "do",
    "this",
    "that",
    "these",
    "the",
    "a",
    "my",
    "it",
    "is",
    "here",
    "one",
    "more",
    "can",
    "could",
    "would",
    "will",
    "you",
    "i",
    "we",
    "me",
    "us",
    "for",
    "to",
    "as",
    "follows",
];
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
    /// Words up to here stand before a colon, and say what stands after it is; 0 without.
    label: usize,
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
    let first = name_of_act(tool).next().or(tool.name.first());
    let spoken: Vec<usize> = acts(reading, tool).map(|word| word.start).collect();
    let is_act = |word: &Word| {
        let base = base(word);
        let own = first.is_some_and(|own| own == base || alike(own).iter().any(|it| it == base));
        own || (is_verb_of_change(word) && tool.speaks_of(base)) || spoken.contains(&word.start)
    };
    let is_name = |word: &Word| {
        tool.telling_name()
            .iter()
            .any(|name| same(name, base(word)))
    };
    if is_reversed(&clauses, &is_act) || is_quoted_by_label(&clauses, &is_act, &is_name) {
        return false;
    }
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
    if none_of
        || no_need
        || (is_verb && reverses(before))
        || !forgets && before.iter().any(|word| is_negator(word))
    {
        return Some(Mood::Forbidden);
    }
    let has = |list: &[&str]| {
        before
            .iter()
            .any(|word| list.contains(&word.lower.as_str()))
    };
    let polite = is_polite(before);
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

/// Whether words before an act turn it round: "undo", "roll back" and the like, but not "don't forget to", nor what stands before an
/// "and".
fn reverses(before: &[&Word]) -> bool {
    let from = before
        .iter()
        .rposition(|word| matches!(word.lower.as_str(), "and" | "then" | "but"));
    let before = &before[from.map_or(0, |at| at + 1)..];
    (0..before.len()).any(|at| is_reversing(before, at))
}

fn is_reversing(words: &[&Word], at: usize) -> bool {
    let lower = |at: usize| words.get(at).map_or("", |word| word.lower.as_str());
    let is_negated = words[..at].iter().any(|word| is_negator(word));
    !is_negated
        && (REVERSING.contains(&lower(at)) || REVERSING_PAIRS.contains(&(lower(at), lower(at + 1))))
}

/// Whether a clause says no more than that something is turned round, and the tool is for something else: "Undo. Delete …".
fn is_reversed(clauses: &[Clause<'_>], is_act: &Meant<'_>) -> bool {
    // With these begins who wants something else now.
    const ANEW: &[&str] = &["stop", "halt", "skip", "ignore", "forget"];
    clauses.iter().any(|clause| {
        let words = clause.words.iter().copied();
        let told = words.filter(|word| !FILLERS.contains(&word.lower.as_str()));
        let told: Vec<&Word> = told.collect();
        let length = match told.as_slice() {
            [one, ..] if ANEW.contains(&one.lower.as_str()) || is_act(one) => return false,
            [one, ..] if REVERSING.contains(&one.lower.as_str()) => 1,
            [one, other, ..] => {
                let pair = (one.lower.as_str(), other.lower.as_str());
                if !REVERSING_PAIRS.contains(&pair) {
                    return false;
                }
                2
            }
            _ => return false,
        };
        let left = told.get(length..).unwrap_or_default();
        left.iter().all(|word| LEFT.contains(&word.lower.as_str()))
    })
}

/// Whether an act stands only after a colon, and what stands before it is no request: "Undo: delete …", "Ada wrote: delete …".
fn is_quoted_by_label(clauses: &[Clause<'_>], is_act: &Meant<'_>, is_name: &Meant<'_>) -> bool {
    let is_asked = |clause: &Clause<'_>| {
        let own = clause.words.get(..clause.own).unwrap_or_default();
        own.iter().any(|word| is_act(word))
    };
    let is_quoted = |clause: &Clause<'_>| {
        let (label, rest) = clause.words.split_at(clause.label);
        !label.is_empty()
            && !label.iter().any(|word| is_act(word) || is_name(word))
            && rest.iter().any(|word| is_act(word))
    };
    clauses.iter().any(is_quoted) && !clauses.iter().any(is_asked)
}

/// Whether words before a colon ask for what stands after it.
fn is_asking_label(words: &[&Word]) -> bool {
    words.iter().all(|word| {
        let lower = word.lower.as_str();
        FILLERS.contains(&lower)
            || REQUESTS.contains(&lower)
            || lower.chars().all(|c| c.is_ascii_digit())
    })
}

fn is_speaker(word: &str) -> bool {
    matches!(word, "i" | "we" | "you" | "i'll" | "i'm" | "i've" | "we've")
}

/// "Could you …"
fn is_polite(words: &[&Word]) -> bool {
    words.windows(2).any(|pair| {
        matches!(pair[0].lower.as_str(), "can" | "could" | "would" | "will")
            && pair[1].lower == "you"
    })
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

pub(crate) fn is_negator(word: &Word) -> bool {
    let lower = word.lower.as_str();
    NEGATORS.contains(&lower)
        || lower.ends_with("n't")
        || lower.ends_with("n\u{2019}t")
        || lower == "dont"
}

/// The stem of the verb that a word is a form of.
pub(crate) fn base(word: &Word) -> &str {
    let irregular = PAST.iter().find(|(form, _)| *form == word.lower);
    irregular.map_or(word.stem.as_str(), |(_, verb)| verb)
}

/// Whether a word is a verb of change, and not more often a thing.
pub(crate) fn is_verb_of_change(word: &Word) -> bool {
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
        // What stands in the line after a colon belongs to what is before it.
        let is_new_sentence = sentence != Some(end) && !gap.trim_end().ends_with(':');
        is_text &= !is_new_sentence;
        sentence = Some(end);
        let marks =
            gap.contains([',', ';', '!', '(', ')', '\u{2013}', '\u{2014}']) || gap.contains(" - ");
        let has_colon = gap.contains(": ") || gap.contains(":\n");
        let label = clauses.last().filter(|_| has_colon);
        let label = label.filter(|clause| clause.label == 0 && is_asking_label(&clause.words));
        // "Could you do this: …?" is no question.
        let is_asked = label.is_some_and(|clause| is_polite(&clause.words));
        let is_label = label.is_some();
        if is_new_sentence || marks || is_label || clauses.is_empty() {
            let asks = end.is_some_and(|end| reading.slice(end, end + 1) == "?") && !is_asked;
            clauses.push(Clause {
                words: Vec::new(),
                own: 0,
                label: 0,
                asks,
            });
        }
        if let Some(clause) = clauses.last_mut()
            && has_colon
            && !is_label
        {
            is_text = true;
            if clause.label == 0 {
                clause.label = clause.words.len();
            }
        }
        edge = word.end;
        if let Some(clause) = clauses.last_mut() {
            clause.words.push(word);
            is_text |= clause.own > 1 && TEXT.contains(&word.lower.as_str());
            clause.own += usize::from(!is_text);
        }
    }
    clauses
}
