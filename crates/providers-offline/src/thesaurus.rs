//! Words of everyday English that people use for one another when they talk to tools.
//!
//! General vocabulary only: no tool and no server is meant by any line.

use std::{collections::HashMap, sync::LazyLock};

use crate::{
    catalog::Tool,
    extract::Reading,
    text::{Word, stem, words},
};

/// Words that stand for one another.
const GROUPS: &[&str] = &[
    "customer client buyer patron",
    "recent latest newest last new",
    "ticket case issue complaint",
    "create open file raise submit register log add make",
    "value worth balance",
    "calculate compute",
    "sum add plus total addition",
    "list show display enumerate",
    "delete remove erase drop",
    "update change edit modify",
    "search find look lookup query",
    "read open view cat content contain",
    "write save store",
    "echo repeat say",
    "directory folder dir",
    "image picture photo logo",
    "env environment",
    "time clock",
    "weather forecast temperature",
    "message msg",
    "toggle flip switch",
    "switch checkout",
    "start trigger launch run",
    "commit commits log",
    "price cost",
    "person user people",
    "compress gzip zip",
    "move rename",
    "info information details metadata",
    "email mail",
    "appointment event meeting",
    "purchase order",
    "signup signed register join created",
    "size sizes large",
    "repo repository",
    "config configuration settings",
    "document doc",
    "max maximum most limit",
    "id identifier",
    "priority urgency urgent",
];

/// Words for a degree, most to least alike: a person says one, a schema lists another.
const DEGREES: &[&str] = &[
    "high urgent critical important severe blocker asap emergency highest immediate",
    "low minor trivial unimportant lowest",
    "normal medium regular standard default moderate",
    "asc ascending",
    "desc descending",
    "true yes on enabled",
    "false no off disabled",
];

/// Verbs that nearly every tool has in its name, so that they tell little.
const GENERIC: &[&str] = &[
    "get",
    "list",
    "show",
    "create",
    "read",
    "write",
    "make",
    "give",
    "tell",
    "find",
    "use",
    "call",
    "run",
    "return",
    "fetch",
    "display",
    "tool",
    "new",
    "want",
    "need",
    "help",
    "set",
    "open",
    "print",
    "provide",
    "retrieve",
    "trigger",
    "start",
    "demonstrate",
    "let",
    "know",
    "take",
    "go",
    "see",
    "look",
    "see",
    "say",
    "tells",
    "id",
    "name",
    "number",
    "log",
    "thing",
    "view",
    "contain",
    "content",
];

/// Words that exclude one another.
const OPPOSITES: &[(&str, &str)] = &[
    ("oldest earliest", "newest latest recent recently"),
    ("largest biggest highest", "smallest lowest"),
    ("inactive disabled", "active enabled"),
    ("unpaid", "paid"),
    ("offline", "online"),
    ("closed", "open"),
];

struct Thesaurus {
    alike: HashMap<String, Vec<String>>,
    generic: Vec<String>,
}

static THESAURUS: LazyLock<Thesaurus> = LazyLock::new(|| {
    let mut alike: HashMap<String, Vec<String>> = HashMap::new();
    for group in GROUPS {
        let stems: Vec<String> = group.split(' ').map(stem).collect();
        for one in &stems {
            let entry = alike.entry(one.clone()).or_default();
            for other in &stems {
                if other != one && !entry.contains(other) {
                    entry.push(other.clone());
                }
            }
        }
    }
    Thesaurus {
        alike,
        generic: GENERIC.iter().map(|word| stem(word)).collect(),
    }
});

/// The stems that may stand for this one, itself not among them.
pub(crate) fn alike(stem: &str) -> &'static [String] {
    THESAURUS.alike.get(stem).map_or(&[], Vec::as_slice)
}

/// Whether two stems are the same or stand for one another.
pub(crate) fn same(one: &str, other: &str) -> bool {
    one == other || alike(one).iter().any(|stem| stem == other)
}

/// Whether a stem is in nearly every tool's description.
pub(crate) fn is_generic(stem: &str) -> bool {
    THESAURUS.generic.iter().any(|generic| generic == stem)
}

/// Whether `word` says the same degree as the schema's `option` (both lower case).
pub(crate) fn same_degree(word: &str, option: &str) -> bool {
    DEGREES.iter().any(|group| {
        let mut words = group.split(' ');
        words.clone().any(|w| w == word) && words.any(|w| w == option)
    })
}

/// Whether a text asks for the opposite of what a tool says it gives: "the oldest customers" of a
/// tool for the most recent ones.
pub(crate) fn contradicts(reading: &Reading<'_>, tool: &Tool) -> bool {
    let described = format!(
        "{} {}",
        tool.name_words.join(" "),
        tool.definition.description
    );
    let described = words(&described);
    let asks = |side: &str| {
        let said = |word: &Word| side.split(' ').any(|own| own == word.lower);
        reading
            .words
            .iter()
            .any(|word| said(word) && !reading.is_quoted(word.start))
    };
    let gives = |side: &str| {
        described
            .iter()
            .any(|word| side.split(' ').any(|own| own == word.lower))
    };
    let against =
        |asked: &str, given: &str| asks(asked) && !asks(given) && gives(given) && !gives(asked);
    OPPOSITES
        .iter()
        .any(|(one, other)| against(one, other) || against(other, one))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alike_goes_both_ways() {
        assert!(same(&stem("clients"), &stem("customer")));
        assert!(same(&stem("customer"), &stem("client")));
        assert!(!same(&stem("customer"), &stem("ticket")));
        assert!(same_degree("urgent", "high"));
        assert!(!same_degree("urgent", "low"));
    }
}
