//! What a text wants done, as far as its verbs and its form tell.

use std::{collections::HashSet, sync::LazyLock};

use crate::{
    catalog::Tool,
    extract::Reading,
    text::{Word, stem},
    thesaurus::{alike, is_generic, same},
};

/// Verbs that ask for a change.
const CHANGING: &[&str] = &[
    "create", "open", "file", "raise", "add", "write", "delete", "remove", "update", "change",
    "edit", "send", "move", "rename", "set", "submit", "register", "save", "append", "commit",
    "reset", "checkout", "switch", "toggle", "trigger", "start", "book", "schedule", "cancel",
    "erase", "drop", "close", "buy", "order", "pay", "post", "email", "mail", "upload", "store",
    "insert", "assign", "draw", "compose", "stage", "stop", "restart", "deploy", "install",
];

/// Their stems.
static CHANGES: LazyLock<HashSet<String>> =
    LazyLock::new(|| CHANGING.iter().map(|verb| stem(verb)).collect());

/// Verbs that take something away or give it out of hand.
const LOSING: &[&str] = &[
    "delete", "remove", "reset", "cancel", "erase", "drop", "close", "stop", "send", "pay", "buy",
    "order",
];

/// Verbs after which stands what is to be made.
const CREATING: &[&str] = &[
    "create", "open", "file", "raise", "add", "submit", "register", "book", "schedule", "insert",
];

/// Verbs with which other requests begin.
const ASKING: &[&str] = &[
    "show",
    "list",
    "tell",
    "give",
    "get",
    "find",
    "search",
    "look",
    "read",
    "calculate",
    "compute",
    "convert",
    "display",
    "print",
    "fetch",
    "check",
    "count",
    "describe",
    "echo",
    "repeat",
    "say",
    "call",
    "use",
    "run",
    "need",
    "want",
    "help",
    "make",
    "add",
    "sum",
    "return",
    "provide",
    "explain",
    "compress",
    "gzip",
    "zip",
    "simulate",
    "investigate",
    "research",
    "turn",
    "enable",
    "disable",
    "invoke",
    "execute",
    "let",
    "let's",
    "compare",
    "summarize",
    "summarise",
    "analyze",
    "analyse",
    "review",
    "inspect",
    "load",
    "quote",
    "view",
    "cat",
    "see",
    "retrieve",
    "ping",
];

/// Words with which questions begin.
const QUESTIONING: &[&str] = &[
    "what", "what's", "which", "who", "who's", "whose", "when", "where", "how", "is", "are", "can",
    "could", "do", "does", "did", "will", "would", "has", "have", "may", "should", "i'd",
];

/// A change that a text asks for, by its verb.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Intent {
    verb: String,
    stem: String,
    /// The stems of what is to be changed, as far as they stand right after the verb.
    object: Vec<String>,
}

impl Intent {
    /// The change that a text asks for, if it does: the verb stands where a command begins.
    pub(crate) fn of(reading: &Reading<'_>) -> Option<Self> {
        reading.words.iter().enumerate().find_map(|(i, word)| {
            let before = i.checked_sub(1).and_then(|j| reading.words.get(j));
            let place = match before {
                None => true,
                Some(before) => {
                    let gap = reading.slice(before.end, word.start);
                    gap.contains(['.', '!', '?', ';', '\n'])
                        || matches!(
                            before.lower.as_str(),
                            "please"
                                | "to"
                                | "you"
                                | "and"
                                | "then"
                                | "now"
                                | "kindly"
                                | "we"
                                | "i"
                                | "me"
                                | "hi"
                                | "hello"
                                | "hey"
                        )
                }
            };
            (place && CHANGING.contains(&word.lower.as_str()) && !reading.is_quoted(word.start))
                .then(|| Self {
                    verb: word.lower.clone(),
                    stem: word.stem.clone(),
                    object: object(reading, word),
                })
        })
    }

    /// The stem of the verb.
    pub(crate) fn stem(&self) -> &str {
        &self.stem
    }

    /// How much a tool goes against it: 1 and more is out of the question.
    pub(crate) fn against(&self, tool: &Tool) -> f64 {
        // A tool that only reads may say "create" of what it lists.
        let own = |stem: &String| {
            if tool.reads && !tool.writes {
                tool.name.contains(stem)
            } else {
                tool.speaks_of(stem)
            }
        };
        let speaks = own(&self.stem) || alike(&self.stem).iter().any(own);
        // "Create a customer" means no tool that creates tickets for customers, and "delete the
        // file" none that deletes something else.
        let is_about = |stem: &String| {
            let first = tool
                .name
                .iter()
                .chain(&tool.title)
                .chain(tool.about.iter().take(4));
            first.into_iter().any(|own| same(own, stem))
        };
        let makes = [CREATING, LOSING]
            .iter()
            .any(|verbs| verbs.contains(&self.verb.as_str()));
        if makes && !self.object.is_empty() && !self.object.iter().any(is_about) {
            return 1.2;
        }
        match (speaks, tool.writes) {
            (true, _) => 0.0,
            // What takes something away must not become something else.
            (false, true) if LOSING.contains(&self.verb.as_str()) => 1.2,
            (false, true)
                if is_generic(&self.stem)
                    || matches!(self.verb.as_str(), "add" | "set" | "change") =>
            {
                0.3
            }
            (false, true) => 0.8,
            (false, false) => 1.2,
        }
    }
}

/// Whether a stem is that of a verb of change.
pub(crate) fn is_changing(stem: &str) -> bool {
    CHANGES.contains(stem)
}

/// The content words between a verb and the next preposition or value.
fn object(reading: &Reading<'_>, verb: &Word) -> Vec<String> {
    const BEFORE: &[&str] = &[
        "a", "an", "the", "new", "another", "some", "my", "our", "me", "us",
    ];
    let mut edge = verb.end;
    let mut stems = Vec::new();
    for word in reading.words_after(verb.end) {
        let gap = reading.slice(edge, word.start);
        let value = reading
            .mention_at(word.start)
            .is_some_and(|mention| word.end <= mention.end);
        let ends = value || gap.contains([':', ',', '.', '?', '!', ';', '\n']);
        edge = word.end;
        if BEFORE.contains(&word.lower.as_str()) && stems.is_empty() && !ends {
            continue;
        }
        if ends
            || word.is_stop()
            || matches!(
                word.lower.as_str(),
                "named" | "called" | "titled" | "saying"
            )
        {
            break;
        }
        stems.push(word.stem.clone());
    }
    stems
}

/// Whether a text asks what there is: it begins with a question word, or with a verb of looking
/// that is not in the tool's own name.
pub(crate) fn only_looks(reading: &Reading<'_>, tool_name: &[String]) -> bool {
    const QUESTIONS: &[&str] = &[
        "what", "what's", "which", "who", "who's", "whose", "when", "where", "how", "is", "are",
        "does", "did", "has",
    ];
    const LOOKING: &[&str] = &[
        "show", "list", "read", "search", "find", "view", "display", "print", "fetch", "get",
        "tell", "describe", "count", "check", "cat", "see", "look",
    ];
    let first = reading.words.iter().find(|word| {
        !matches!(
            word.lower.as_str(),
            "please"
                | "hi"
                | "hello"
                | "hey"
                | "and"
                | "so"
                | "now"
                | "can"
                | "could"
                | "you"
                | "then"
        )
    });
    first.is_some_and(|word| {
        QUESTIONS.contains(&word.lower.as_str())
            || (LOOKING.contains(&word.lower.as_str()) && !tool_name.contains(&word.stem))
    })
}

/// Whether a text has the form of a question or a command.
pub(crate) fn is_request(reading: &Reading<'_>) -> bool {
    if reading.text.contains('?') {
        return true;
    }
    let mut words = reading
        .words
        .iter()
        .map(|word| word.lower.as_str())
        .skip_while(|word| {
            matches!(
                *word,
                "please"
                    | "hi"
                    | "hello"
                    | "hey"
                    | "ok"
                    | "okay"
                    | "now"
                    | "and"
                    | "then"
                    | "thanks"
                    | "so"
                    | "well"
                    | "kindly"
                    | "also"
            )
        });
    let (first, second) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    let wish = matches!(first, "i" | "we")
        && matches!(second, "want" | "need" | "would" | "like" | "wish" | "must");
    let known = |list: &[&str]| list.contains(&first);
    wish || known(QUESTIONING) || known(ASKING) || known(CHANGING) || Intent::of(reading).is_some()
}
