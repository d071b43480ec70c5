//! Which tool a question means.
//!
//! BM25 over everything a tool's definition says gives the order of likeness. It says nothing
//! about whether a question means any tool at all, so three more things count: which of the
//! question's words the tool has in which place (its name tells more than a parameter's
//! description), how much of the question that leaves unexplained, and whether the question holds
//! the arguments that the tool needs. A tool that is named exactly wins.

use std::{collections::HashSet, sync::Arc};

use bm25::{Embedder, EmbedderBuilder, Scorer, Tokenizer};
use switchboard_domain::ToolDefinition;

use crate::{
    catalog::Tool,
    extract::Reading,
    fill::{Filling, fill},
    intent::{Intent, is_request, only_looks},
    names::named_exactly,
    schema::Param,
    terms::{Term, terms},
    thesaurus::{alike, contradicts},
};

/// Below this strength a request means no tool.
const STRENGTH_OF_REQUEST: f64 = 0.55;
/// The same for what has not the form of a request.
const STRENGTH_OF_REMARK: f64 = 0.75;
/// The part of a request's words that a tool must explain.
const COVER_OF_REQUEST: f64 = 0.34;
/// The same for what has not the form of a request.
const COVER_OF_REMARK: f64 = 0.65;
/// What [`place`] is more than for a word of the tool's name, or one that means the same.
const IN_NAME: f64 = 0.75;
/// What a tool must explain more than the one whose result it needs.
const MORE_COVER: f64 = 0.1;
/// Tools whose arguments are filled; the rest is too unlike the question.
const FILLED: usize = 12;

/// One tool held against one text.
#[derive(Debug, Clone)]
pub(crate) struct Match {
    /// Its place in the catalog.
    pub(crate) tool: usize,
    /// What the tools are sorted by.
    pub(crate) score: f64,
    /// The text means this tool.
    pub(crate) accepted: bool,
    /// The text names it exactly.
    pub(crate) explicit: bool,
    /// Words of the text that the tool has in its name, weighted.
    pub(crate) strength: f64,
    /// The part of the text's words that it explains, 0 to 1.
    cover: f64,
    /// What of the text fills its parameters.
    pub(crate) filling: Filling,
    /// Missing parameters whose value another result or tool can give.
    pub(crate) reachable: Vec<String>,
}

impl Match {
    /// Whether it can be called now or after another call.
    pub(crate) fn is_callable(&self) -> bool {
        self.filling.refused.is_empty()
            && self
                .filling
                .missing
                .iter()
                .all(|name| self.reachable.contains(name))
    }
}

/// What else can give the value of a missing parameter: the places in the text that say so, as
/// spans; `None` if nothing can.
pub(crate) type Reach<'a> =
    &'a dyn Fn(&Reading<'_>, &Tool, &Param, &Filling) -> Option<Vec<(usize, usize)>>;

/// Splits at spaces: the documents are made of stems already.
#[derive(Debug, Clone, Copy, Default)]
struct Stems;

impl Tokenizer for Stems {
    fn tokenize(&self, text: &str) -> Vec<String> {
        text.split(' ')
            .filter(|stem| !stem.is_empty())
            .map(str::to_owned)
            .collect()
    }
}

/// The tools, indexed for search.
pub(crate) struct Index {
    /// The tools.
    pub(crate) tools: Vec<Tool>,
    embedder: Embedder<u64, Stems>,
    scorer: Scorer<usize, u64>,
}

impl Index {
    /// Reads the definitions of tools and indexes them.
    pub(crate) fn new(definitions: &[Arc<ToolDefinition>]) -> Self {
        let tools: Vec<Tool> = definitions.iter().cloned().map(Tool::new).collect();
        let documents: Vec<String> = tools.iter().map(document).collect();
        let corpus: Vec<&str> = documents.iter().map(String::as_str).collect();
        let embedder: Embedder<u64, Stems> =
            EmbedderBuilder::with_tokenizer_and_fit_to_corpus(Stems, &corpus).build();
        let mut scorer = Scorer::new();
        for (i, document) in documents.iter().enumerate() {
            scorer.upsert(&i, embedder.embed(document));
        }
        Self {
            tools,
            embedder,
            scorer,
        }
    }

    /// Whether it is of these very definitions, in this order.
    pub(crate) fn is_of(&self, definitions: &[Arc<ToolDefinition>]) -> bool {
        let own = self.tools.iter().map(|tool| &tool.definition);
        own.len() == definitions.len()
            && own
                .zip(definitions)
                .all(|(own, given)| Arc::ptr_eq(own, given))
    }

    /// The tools of `allowed`, the likeliest first. Tools without any likeness are left out unless
    /// `all` is set.
    pub(crate) fn rank(
        &self,
        reading: &Reading<'_>,
        allowed: &[usize],
        reach: Reach<'_>,
        all: bool,
    ) -> Vec<Match> {
        let terms = terms(reading);
        let likeness = self.likeness(&terms, allowed);
        let best = likeness.iter().map(|(_, score)| *score).fold(0.0, f64::max);
        let mut kept: Vec<(usize, f64, bool)> = likeness
            .into_iter()
            .map(|(i, score)| {
                (
                    i,
                    if best > 0.0 { score / best } else { 0.0 },
                    named_exactly(&self.tools[i], reading).is_some(),
                )
            })
            .filter(|(_, likeness, explicit)| all || *likeness > 0.0 || *explicit)
            .collect();
        kept.sort_by(|a, b| b.2.cmp(&a.2).then(b.1.total_cmp(&a.1)).then(a.0.cmp(&b.0)));
        kept.truncate(FILLED);
        let intent = Intent::of(reading);
        let mut matches: Vec<Match> = kept
            .into_iter()
            .map(|(i, likeness, explicit)| {
                self.hold(
                    i,
                    likeness,
                    explicit,
                    reading,
                    &terms,
                    intent.as_ref(),
                    reach,
                )
            })
            .collect();
        matches.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.tool.cmp(&b.tool)));
        prefer_the_whole(&mut matches);
        matches
    }

    fn likeness(&self, terms: &[Term], allowed: &[usize]) -> Vec<(usize, f64)> {
        // A word counts twice, what means the same once.
        let said = terms.iter().map(|term| term.stem.as_str());
        let mut query: Vec<&str> = said.clone().chain(said).collect();
        query.extend(
            terms
                .iter()
                .flat_map(|term| alike(&term.stem))
                .map(String::as_str),
        );
        let query = self.embedder.embed(&query.join(" "));
        let score = |i: &usize| self.scorer.score(i, &query).map_or(0.0, f64::from);
        allowed.iter().map(|i| (*i, score(i))).collect()
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "what one tool is held against; a struct would only rename it"
    )]
    fn hold(
        &self,
        i: usize,
        likeness: f64,
        explicit: bool,
        reading: &Reading<'_>,
        terms: &[Term],
        intent: Option<&Intent>,
        reach: Reach<'_>,
    ) -> Match {
        let tool = &self.tools[i];
        let filling = fill(tool, reading);
        let mut reachable = Vec::new();
        let mut explained = filling.spans.clone();
        for param in tool
            .params
            .iter()
            .filter(|param| filling.missing.contains(&param.name))
        {
            if let Some(spans) = reach(reading, tool, param, &filling) {
                reachable.push(param.name.clone());
                explained.extend(spans);
            }
        }
        let Weight {
            strength,
            cover,
            beside_verb,
        } = weigh(tool, terms, &explained, intent);
        let telling = tool.telling_name();
        let named = telling
            .iter()
            .filter(|name| {
                terms
                    .iter()
                    .any(|term| term.stem == ***name || alike(&term.stem).contains(name))
            })
            .count();
        let name_cover = ratio(named, telling.len());
        let against = match intent {
            Some(intent) => intent.against(tool),
            // Who asks what there is wants nothing changed.
            None if tool.writes && only_looks(reading, &tool.name) => 1.2,
            None => 0.0,
        };
        let arguments = arguments(tool, &filling, &reachable);
        let unlike = ratio(telling.len() - named, 10);
        let score = 1.2 * likeness
            + 0.5 * f64::min(strength, 4.0)
            + 0.8 * name_cover
            + 1.2 * cover
            + arguments
            - against
            - unlike
            + if explicit { 6.0 } else { 0.0 }
            - if tool.deprecated { 0.6 } else { 0.0 };
        let (least, needed) = if is_request(reading) {
            (STRENGTH_OF_REQUEST, COVER_OF_REQUEST)
        } else {
            (STRENGTH_OF_REMARK, COVER_OF_REMARK)
        };
        // "Send an email" means no tool that only happens to say "send" somewhere.
        let meant = beside_verb || intent.is_none_or(|intent| place(tool, intent.stem()) > IN_NAME);
        // Values that the tool has no place for are meant for another one.
        let deaf = filling.unused > 0 && filling.spans.is_empty() && reachable.is_empty();
        let accepted = explicit
            || (strength >= least
                && cover >= needed
                && against < 1.0
                && meant
                && !deaf
                && !contradicts(reading, tool));
        Match {
            tool: i,
            score,
            accepted,
            explicit,
            strength,
            cover,
            filling,
            reachable,
        }
    }
}

/// In "the account value of the most recent customer" the list of customers is a part, however
/// much of it is spoken of: a tool that can take what the best one gives, and explains more of the
/// text, is what is meant.
fn prefer_the_whole(matches: &mut [Match]) {
    let Some(part) = matches.iter().position(|found| found.accepted) else {
        return;
    };
    let best = &matches[part];
    if best.explicit || !best.reachable.is_empty() {
        return;
    }
    let whole = (part + 1..matches.len()).find(|&i| {
        let found = &matches[i];
        found.accepted
            && !found.reachable.is_empty()
            && found.is_callable()
            && found.cover > best.cover + MORE_COVER
    });
    if let Some(whole) = whole {
        matches[part..=whole].rotate_right(1);
    }
}

/// How the words of a text stand to a tool.
struct Weight {
    /// Words that the tool has, by their place in it.
    strength: f64,
    /// The part of the words that the tool or its arguments explain.
    cover: f64,
    /// A word other than the verb of a change speaks for the tool.
    beside_verb: bool,
}

fn weigh(
    tool: &Tool,
    terms: &[Term],
    explained: &[(usize, usize)],
    intent: Option<&Intent>,
) -> Weight {
    let explained = Cover::new(explained);
    let (mut strength, mut hit, mut total) = (0.0, 0.0, 0.0);
    let mut beside_verb = false;
    let mut seen: HashSet<&str> = HashSet::new();
    for term in terms.iter().filter(|term| seen.insert(&term.stem)) {
        let place = place(tool, &term.stem);
        // What went into an argument explains itself, but does not speak for the tool unless it is
        // the tool's own word.
        let explained = explained.holds(term.start, term.end);
        let counted = if explained && place <= IN_NAME {
            0.0
        } else {
            place
        };
        strength += counted * term.weight;
        total += term.weight;
        if explained || place > 0.0 {
            hit += term.weight;
        }
        beside_verb |= counted > 0.0 && intent.is_none_or(|intent| intent.stem() != term.stem);
    }
    let cover = if total > 0.0 { hit / total } else { 0.0 };
    Weight {
        strength,
        cover,
        beside_verb,
    }
}

/// Spans, in which it is looked up whether one of them holds another.
struct Cover {
    /// In order of their starts; the end is the furthest of all spans so far.
    spans: Vec<(usize, usize)>,
}

impl Cover {
    fn new(spans: &[(usize, usize)]) -> Self {
        let mut spans = spans.to_vec();
        spans.sort_unstable();
        let mut furthest = 0;
        for span in &mut spans {
            furthest = span.1.max(furthest);
            span.1 = furthest;
        }
        Self { spans }
    }

    fn holds(&self, start: usize, end: usize) -> bool {
        let count = self.spans.partition_point(|span| span.0 <= start);
        let last = count.checked_sub(1).and_then(|i| self.spans.get(i));
        last.is_some_and(|span| end <= span.1)
    }
}

fn ratio(part: usize, whole: usize) -> f64 {
    let number = |n: usize| f64::from(u32::try_from(n).unwrap_or(u32::MAX));
    if whole == 0 {
        0.0
    } else {
        number(part) / number(whole)
    }
}

/// What the arguments say for or against a tool.
fn arguments(tool: &Tool, filling: &Filling, reachable: &[String]) -> f64 {
    let required = tool.params.iter().filter(|param| param.required).count();
    let lost = filling
        .missing
        .iter()
        .filter(|name| !reachable.contains(name))
        .count();
    let missing = if required == 0 {
        0.0
    } else if lost == 0 {
        0.6
    } else {
        -0.6 * ratio(lost, required) - 0.15 * ratio(lost.min(3), 1)
    };
    missing + 0.06 * f64::min(filling.evidence, 12.0) - 0.4 * ratio(filling.unused.min(3), 1)
}

/// In which place a tool has a word; 1 is its name, 0 nowhere. A word that means the same counts
/// for a little less.
fn place(tool: &Tool, stem: &str) -> f64 {
    let own = exact_place(tool, stem);
    let other = alike(stem)
        .iter()
        .map(|other| 0.8 * exact_place(tool, other))
        .fold(0.0, f64::max);
    f64::max(own, other)
}

fn exact_place(tool: &Tool, stem: &str) -> f64 {
    let has = |list: &[String]| list.iter().any(|own| own == stem);
    if has(&tool.name) {
        1.0
    } else if has(&tool.choices) {
        0.9
    } else if has(&tool.title) {
        0.85
    } else if has(&tool.about) || tool.params.iter().any(|param| has(&param.stems)) {
        0.6
    } else if has(&tool.output) {
        0.5
    } else if tool.params.iter().any(|param| has(&param.about)) || has(&tool.server) {
        0.35
    } else {
        0.0
    }
}

/// A tool as a document for BM25: what tells more is said more often.
fn document(tool: &Tool) -> String {
    let mut words: Vec<&str> = Vec::new();
    for _ in 0..3 {
        words.extend(tool.name.iter().map(String::as_str));
    }
    for _ in 0..2 {
        words.extend(tool.title.iter().map(String::as_str));
        words.extend(tool.choices.iter().map(String::as_str));
    }
    words.extend(
        tool.about
            .iter()
            .chain(&tool.output)
            .chain(&tool.server)
            .map(String::as_str),
    );
    for param in &tool.params {
        words.extend(param.stems.iter().chain(&param.about).map(String::as_str));
    }
    words.join(" ")
}
