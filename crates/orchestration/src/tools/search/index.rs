//! The tools there are, searchable.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    fmt,
    ops::Bound,
    sync::Arc,
};

use bm25::{Embedder, EmbedderBuilder, Scorer, Tokenizer};
use serde_json::Value;
use switchboard_domain::{ToolDefinition, nearest::nearest};

use super::words::Words;
use crate::{
    policy::approval::only_reads,
    tools::{per_definition::PerDefinition, tokens::estimate_tool},
};

/// Words of a query that are looked at.
const QUERY: usize = 64;
/// Bytes that a word must have to be looked for in longer ones, and among those that are written alike.
const PART: usize = 4;
/// How much the length of a definition counts against it, 0 to 1. Little: long descriptions of tools are
/// mostly good ones.
const B: f32 = 0.4;
/// Of tools that fit alike those that only read come first: a person who asks wants to know.
const READS: f32 = 1.1;
/// Tools that are found by looking at each: a table of their names would take longer to make.
const FEW: usize = 16;
/// Levels of a schema whose parameters are read.
const DEPTH: usize = 4;

/// The tools of a catalog, with what a search needs of them. That is made when something is searched for
/// the first time, and again only of tools that changed.
#[derive(Default)]
pub struct ToolIndex {
    tools: Vec<Arc<ToolDefinition>>,
    tokens: Vec<u64>,
    /// The tokens of definitions that were weighed before, also for other indexes.
    weights: Option<Arc<PerDefinition<u64>>>,
    /// Once it is needed: every run has an index, and most have few tools and never search.
    rest: Option<Box<Rest>>,
}

/// What an index of many tools has beside them.
#[derive(Default)]
struct Rest {
    /// Where a name is, if there are more than [`FEW`].
    places: HashMap<String, usize>,
    /// The stems of each tool by name, once they were needed.
    documents: HashMap<String, String>,
    search: Option<Search>,
}

/// A tool that fits a query.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The tool.
    pub tool: Arc<ToolDefinition>,
    /// How well it fits: above 0, and to be compared within one search only.
    pub score: f32,
}

struct Search {
    embedder: Embedder<u64, Spaces>,
    scorer: Scorer<usize, u64>,
    vocabulary: BTreeSet<String>,
}

impl Search {
    /// Where no tool has a word, the one that is written most like it: typing errors, and forms that have
    /// another stem.
    fn alike<'s>(&'s self, stem: &str) -> Option<&'s str> {
        let is_known = self.vocabulary.contains(stem) || self.related(stem).next().is_some();
        if stem.len() < PART || is_known {
            return None;
        }
        let words = self.vocabulary.iter().map(String::as_str);
        nearest(stem, words.filter(|word| word.len() >= PART))
    }

    /// Words of the definitions that begin with a word.
    fn related<'s>(&'s self, stem: &'s str) -> impl Iterator<Item = &'s str> {
        let after = (Bound::Excluded(stem), Bound::Unbounded);
        self.vocabulary
            .range::<str, _>(after)
            .map(String::as_str)
            .take_while(move |word| word.starts_with(stem))
    }
}

/// The server that a tool is of.
fn server_of(tool: &ToolDefinition) -> Option<&str> {
    tool.origin.as_ref().map(|origin| origin.server.as_str())
}

/// Splits at spaces: documents and queries are made of stems already.
#[derive(Debug, Clone, Copy, Default)]
struct Spaces;

impl Tokenizer for Spaces {
    fn tokenize(&self, text: &str) -> Vec<String> {
        text.split(' ')
            .filter(|stem| !stem.is_empty())
            .map(str::to_owned)
            .collect()
    }
}

impl ToolIndex {
    /// Shares the weights of definitions with other indexes.
    pub(crate) fn shares_weights(&mut self, weights: Arc<PerDefinition<u64>>) {
        self.weights = Some(weights);
    }

    /// Takes the catalog as it is now; returns whether it is another one than before. The same catalog
    /// again costs a comparison of pointers.
    pub fn update(&mut self, tools: &[Arc<ToolDefinition>]) -> bool {
        let same = |same: fn(&Arc<ToolDefinition>, &Arc<ToolDefinition>) -> bool| {
            self.tools.len() == tools.len() && self.tools.iter().zip(tools).all(|(a, b)| same(a, b))
        };
        if same(Arc::ptr_eq) {
            return false;
        }
        if same(|a, b| a == b) {
            self.tools = tools.to_vec();
            return false;
        }
        let weights = Arc::clone(self.weights.get_or_insert_default());
        let tokens = tools
            .iter()
            .map(|tool| match self.place(&tool.name) {
                Some(place) if self.tools[place] == *tool => self.tokens[place],
                _ => {
                    if let Some(rest) = &mut self.rest {
                        rest.documents.remove(&tool.name);
                    }
                    *weights.of(tool, estimate_tool)
                }
            })
            .collect();
        self.tokens = tokens;
        self.tools = tools.to_vec();
        let mut rest = self.rest.take();
        if tools.len() > FEW {
            let rest = rest.get_or_insert_default();
            rest.places.clear();
            for (place, tool) in tools.iter().enumerate() {
                rest.places.entry(tool.name.clone()).or_insert(place);
            }
        }
        if let Some(rest) = &mut rest {
            rest.search = None;
            let mut documents = std::mem::take(&mut rest.documents);
            documents.retain(|name, _| place_in(&self.tools, Some(rest), name).is_some());
            rest.documents = documents;
        }
        self.rest = rest;
        true
    }

    /// The tools, in the order of the catalog.
    pub fn tools(&self) -> &[Arc<ToolDefinition>] {
        &self.tools
    }

    /// The tool of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<ToolDefinition>> {
        self.place(name).map(|place| &self.tools[place])
    }

    fn place(&self, name: &str) -> Option<usize> {
        place_in(&self.tools, self.rest.as_deref(), name)
    }

    /// Tokens of all definitions, estimated.
    pub fn tokens(&self) -> u64 {
        self.tokens.iter().sum()
    }

    /// The tools that fit `query`, the best first, `limit` at most. A tool that is called by its exact
    /// name comes before all others. A word that no tool has stands for the one that is written most like it.
    pub fn search(&mut self, query: &str, limit: usize) -> Vec<Found> {
        self.search_where(query, limit, |_| true)
    }

    /// The same among the tools of one server.
    pub fn search_server(&mut self, server: &str, query: &str, limit: usize) -> Vec<Found> {
        self.search_where(query, limit, |tool| server_of(tool) == Some(server))
    }

    /// The servers of the tools, each with how many there are, in the order of the catalog.
    pub fn servers(&self) -> Vec<(&str, usize)> {
        let mut servers: Vec<(&str, usize)> = Vec::new();
        for server in self.tools.iter().filter_map(|tool| server_of(tool)) {
            match servers.iter_mut().find(|(known, _)| *known == server) {
                Some((_, count)) => *count += 1,
                None => servers.push((server, 1)),
            }
        }
        servers
    }

    fn search_where(
        &mut self,
        query: &str,
        limit: usize,
        is_wanted: impl Fn(&ToolDefinition) -> bool,
    ) -> Vec<Found> {
        let words = Words::default();
        let mut stems = words.stems(query);
        stems.truncate(QUERY);
        let named: HashSet<&str> = query
            .split(|c: char| c.is_whitespace() || matches!(c, ',' | '`' | '"' | '\''))
            .collect();
        self.prepare(&words);
        let Some(search) = self.rest.as_ref().and_then(|rest| rest.search.as_ref()) else {
            return Vec::new();
        };
        // A word counts twice, one that it is a part of once: `mail` and `mailbox`.
        let related: Vec<&str> = stems
            .iter()
            .filter(|stem| stem.len() >= PART)
            .flat_map(|stem| search.related(stem))
            .collect();
        let alike: Vec<&str> = stems.iter().filter_map(|stem| search.alike(stem)).collect();
        let said = stems.iter().map(String::as_str);
        let terms: Vec<&str> = said
            .clone()
            .chain(said)
            .chain(related)
            .chain(alike)
            .collect();
        let embedded = search.embedder.embed(&terms.join(" "));
        let mut found: Vec<(bool, f32, usize)> = self
            .tools
            .iter()
            .enumerate()
            .filter(|(_, tool)| is_wanted(tool))
            .map(|(place, tool)| {
                let score = search.scorer.score(&place, &embedded).unwrap_or(0.0);
                let score = if only_reads(tool.annotations) {
                    score * READS
                } else {
                    score
                };
                (is_named(tool, &named), score, place)
            })
            .filter(|(named, score, _)| *named || *score > 0.0)
            .collect();
        found.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.total_cmp(&a.1)).then(a.2.cmp(&b.2)));
        found.truncate(limit);
        found
            .into_iter()
            .map(|(_, score, place)| Found {
                tool: Arc::clone(&self.tools[place]),
                score,
            })
            .collect()
    }

    fn prepare(&mut self, words: &Words) {
        let rest = self.rest.get_or_insert_default();
        if rest.search.is_some() {
            return;
        }
        for tool in &self.tools {
            if !rest.documents.contains_key(&tool.name) {
                let document = document(tool, words);
                rest.documents.insert(tool.name.clone(), document);
            }
        }
        let documents: Vec<&str> = self
            .tools
            .iter()
            .map(|tool| rest.documents.get(&tool.name).map_or("", String::as_str))
            .collect();
        let embedder = EmbedderBuilder::with_tokenizer_and_fit_to_corpus(Spaces, &documents)
            .b(B)
            .build();
        let mut scorer = Scorer::new();
        for (place, document) in documents.iter().enumerate() {
            scorer.upsert(&place, embedder.embed(document));
        }
        let vocabulary = documents
            .iter()
            .flat_map(|document| document.split(' '))
            .map(str::to_owned)
            .collect();
        rest.search = Some(Search {
            embedder,
            scorer,
            vocabulary,
        });
    }
}

/// Where the tool of this name is among these.
fn place_in(tools: &[Arc<ToolDefinition>], rest: Option<&Rest>, name: &str) -> Option<usize> {
    if tools.len() > FEW {
        rest?.places.get(name).copied()
    } else {
        tools.iter().position(|tool| tool.name == name)
    }
}

impl fmt::Debug for ToolIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolIndex")
            .field("tools", &self.tools.len())
            .field("tokens", &self.tokens())
            .field(
                "is_ready",
                &self.rest.as_ref().is_some_and(|rest| rest.search.is_some()),
            )
            .finish_non_exhaustive()
    }
}

/// A name that is an ordinary word, such as `status`, is no mention of the tool.
fn is_named(tool: &ToolDefinition, named: &HashSet<&str>) -> bool {
    let own = tool.origin.as_ref().map(|origin| origin.tool.as_str());
    [Some(tool.name.as_str()), own]
        .into_iter()
        .flatten()
        .any(|name| name.contains(|c: char| !c.is_alphabetic()) && named.contains(name))
}

/// The stems of a tool: what tells more is said more often.
fn document(tool: &ToolDefinition, words: &Words) -> String {
    let own = tool
        .origin
        .as_ref()
        .map_or(&tool.name, |origin| &origin.tool);
    let mut stems = Vec::new();
    for _ in 0..3 {
        words.stems_into(own, &mut stems);
    }
    for _ in 0..2 {
        words.stems_into(tool.title.as_deref().unwrap_or_default(), &mut stems);
        words.stems_into(&tool.description, &mut stems);
    }
    if let Some(origin) = &tool.origin {
        words.stems_into(&origin.server, &mut stems);
    }
    // A tool that takes an order's id is not one that finds orders: parameters add what is new only.
    let mut further = Vec::new();
    parameters(&tool.input_schema, DEPTH, words, &mut further);
    let mut said: HashSet<String> = stems.iter().cloned().collect();
    stems.extend(further.into_iter().filter(|stem| said.insert(stem.clone())));
    stems.join(" ")
}

/// Names, descriptions and choices of parameters, also of those within others.
fn parameters(schema: &Value, depth: usize, words: &Words, stems: &mut Vec<String>) {
    if depth == 0 {
        return;
    }
    if let Some(Value::Object(properties)) = schema.get("properties") {
        for (name, property) in properties {
            words.stems_into(name, stems);
            if let Some(Value::String(text)) = property.get("description") {
                words.stems_into(text, stems);
            }
            parameters(property, depth - 1, words, stems);
        }
    }
    if let Some(Value::Array(choices)) = schema.get("enum") {
        for choice in choices.iter().filter_map(Value::as_str) {
            words.stems_into(choice, stems);
        }
    }
    if let Some(items) = schema.get("items") {
        parameters(items, depth - 1, words, stems);
    }
}
