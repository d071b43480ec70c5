//! The search index of a tool catalog.

use std::{
    collections::HashSet,
    sync::{Arc, OnceLock},
};

use bm25::{Embedder, EmbedderBuilder, Scorer, Tokenizer};
use serde_json::Value;
use switchboard_domain::{ToolDefinition, similar_names::find_nearest};

use super::word_stems::StemSplitter;
use crate::{tools::is_read_only, tools::tokens::estimate_tools};

/// Maximum number of word stems in a search query. Further stems are ignored.
const MAX_QUERY_STEMS: usize = 64;
/// Minimum length of a word stem, in bytes, for prefix matches and corrections of typing errors.
const MIN_STEM_BYTES: usize = 4;
/// BM25 parameter `b`, from 0 to 1: how much the length of a document lowers its score. It is
/// small, because a long tool description is usually a good description.
const LENGTH_WEIGHT: f32 = 0.4;
/// Factor for the scores of read-only tools, so that a read-only tool precedes other tools that
/// match equally well.
const READ_ONLY_FACTOR: f32 = 1.1;
/// Maximum nesting depth of indexed tool parameters. Deeper parameters are not found.
const MAX_SCHEMA_DEPTH: usize = 4;

/// A tool catalog with a full-text search index, which is built at the first search.
#[derive(Default, derive_more::Debug)]
#[debug("ToolIndex {{ tools: {}, tokens: {tokens}, .. }}", tools.len())]
pub struct ToolIndex {
    tools: Vec<Arc<ToolDefinition>>,
    /// Estimated total number of tokens of all tool definitions.
    tokens: u64,
    search: OnceLock<SearchIndex>,
}

struct SearchIndex {
    embedder: Embedder<u64, SpaceTokenizer>,
    scorer: Scorer<usize, u64>,
    vocabulary: HashSet<String>,
}

impl SearchIndex {
    fn build_index(tools: &[Arc<ToolDefinition>], words: &StemSplitter) -> Self {
        let documents: Vec<String> = tools
            .iter()
            .map(|tool| build_index_text(tool, words))
            .collect();
        let texts: Vec<&str> = documents.iter().map(String::as_str).collect();
        let embedder = EmbedderBuilder::with_tokenizer_and_fit_to_corpus(SpaceTokenizer, &texts)
            .b(LENGTH_WEIGHT)
            .build();
        let mut scorer = Scorer::new();
        for (position, document) in texts.iter().enumerate() {
            scorer.upsert(&position, embedder.embed(document));
        }
        let stems = texts.iter().flat_map(|document| document.split(' '));
        Self {
            vocabulary: stems.map(str::to_owned).collect(),
            embedder,
            scorer,
        }
    }

    /// Returns the search terms for a word stem of a query: the stem twice, for a larger weight,
    /// and each longer stem in the index that starts with it, such as `mailbox` for `mail`. If no
    /// stem in the index matches, for example because of a typing error, adds the most similar
    /// stem.
    fn expand_query_stem<'s>(&'s self, stem: &'s str) -> Vec<&'s str> {
        let mut terms = vec![stem, stem];
        if stem.len() < MIN_STEM_BYTES {
            return terms;
        }
        let known = self.vocabulary.iter().map(String::as_str);
        terms.extend(
            known
                .clone()
                .filter(|it| it.len() > stem.len() && it.starts_with(stem)),
        );
        if terms.len() == 2 && !self.vocabulary.contains(stem) {
            terms.extend(find_nearest(
                stem,
                known.filter(|it| it.len() >= MIN_STEM_BYTES),
            ));
        }
        terms
    }
}

/// A tokenizer that splits texts only at spaces, because documents and queries consist of word
/// stems.
#[derive(Debug, Clone, Copy, Default)]
struct SpaceTokenizer;

impl Tokenizer for SpaceTokenizer {
    fn tokenize(&self, text: &str) -> Vec<String> {
        let stems = text.split(' ').filter(|stem| !stem.is_empty());
        stems.map(str::to_owned).collect()
    }
}

impl ToolIndex {
    /// Replaces the tool catalog. Returns whether the catalog changed.
    pub fn set_catalog(&mut self, tools: &[Arc<ToolDefinition>]) -> bool {
        let is_equal = self.tools.len() == tools.len()
            && self.tools.iter().zip(tools).all(|(old, new)| {
                // Pointers are compared first, because comparing tool definitions is slower.
                Arc::ptr_eq(old, new) || old == new
            });
        self.tools = tools.to_vec();
        if !is_equal {
            self.tokens = estimate_tools(tools);
            self.search = OnceLock::new();
        }
        !is_equal
    }

    /// Returns all tools in the order of the catalog.
    pub fn catalog_tools(&self) -> &[Arc<ToolDefinition>] {
        &self.tools
    }

    /// Returns the tool with this name from the catalog.
    pub fn find_tool(&self, name: &str) -> Option<&Arc<ToolDefinition>> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// Returns the estimated total number of tokens of all tool definitions in the catalog.
    pub fn total_tokens(&self) -> u64 {
        self.tokens
    }

    /// Estimates the total number of tokens of `tools`. If `tools` is the whole catalog, returns
    /// the stored estimate.
    pub fn estimate_tokens(&self, tools: &[Arc<ToolDefinition>]) -> u64 {
        let is_same = |(a, b): (&Arc<_>, &Arc<_>)| Arc::ptr_eq(a, b);
        if tools.len() == self.tools.len() && tools.iter().zip(&self.tools).all(is_same) {
            self.tokens
        } else {
            estimate_tools(tools)
        }
    }

    /// Returns the name of each tool server once, in the order of the catalog.
    pub fn server_names(&self) -> Vec<&str> {
        let mut servers: Vec<&str> = Vec::new();
        for server in self.tools.iter().filter_map(|tool| tool.server_name()) {
            if !servers.contains(&server) {
                servers.push(server);
            }
        }
        servers
    }

    /// Returns at most `limit` tools that match the query, best match first. `server` restricts the
    /// search to one server. A tool whose exact name is in the query comes first. For a query word
    /// without matches, the most similar word in the index is searched.
    pub fn search_tools(
        &self,
        query: &str,
        limit: usize,
        server: Option<&str>,
    ) -> Vec<Arc<ToolDefinition>> {
        let words = StemSplitter::default();
        let mut stems = words.split_into_stems(query);
        stems.truncate(MAX_QUERY_STEMS);
        let names: HashSet<&str> = query
            .split(|c: char| c.is_whitespace() || matches!(c, ',' | '`' | '"' | '\''))
            .collect();
        let tools = &self.tools;
        let search = self
            .search
            .get_or_init(|| SearchIndex::build_index(tools, &words));
        let terms: Vec<&str> = stems
            .iter()
            .flat_map(|stem| search.expand_query_stem(stem))
            .collect();
        let embedded = search.embedder.embed(&terms.join(" "));
        let candidates = tools.iter().enumerate();
        let candidates =
            candidates.filter(|(_, tool)| server.is_none() || tool.server_name() == server);
        let mut found: Vec<(bool, f32, usize)> = candidates
            .map(|(position, tool)| {
                let mut score = search.scorer.score(&position, &embedded).unwrap_or(0.0);
                if is_read_only(tool.annotations) {
                    score *= READ_ONLY_FACTOR;
                }
                (is_named_in_query(tool, &names), score, position)
            })
            .filter(|(is_named, score, _)| *is_named || *score > 0.0)
            .collect();
        found.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.total_cmp(&a.1)).then(a.2.cmp(&b.2)));
        found.truncate(limit);
        let positions = found.into_iter().map(|(_, _, position)| position);
        positions
            .map(|position| Arc::clone(&tools[position]))
            .collect()
    }
}

/// Returns whether `names`, the words of a query, contain the exact name of the tool. A name that
/// consists only of letters, such as `status`, does not count, because it may be an ordinary word.
fn is_named_in_query(tool: &ToolDefinition, names: &HashSet<&str>) -> bool {
    [tool.name.as_str(), tool.original_name()]
        .into_iter()
        .any(|name| name.contains(|c: char| !c.is_alphabetic()) && names.contains(name))
}

/// Returns the text that is indexed for a tool: its word stems, separated by spaces. Stems of the
/// name occur three times, and stems of the title and the description twice, so that they have a
/// larger weight.
fn build_index_text(tool: &ToolDefinition, words: &StemSplitter) -> String {
    let mut stems = Vec::new();
    for _ in 0..3 {
        words.append_stems(tool.original_name(), &mut stems);
    }
    for _ in 0..2 {
        words.append_stems(tool.title.as_deref().unwrap_or_default(), &mut stems);
        words.append_stems(&tool.description, &mut stems);
    }
    words.append_stems(tool.server_name().unwrap_or_default(), &mut stems);
    // A word stem of a parameter is added only if the other texts of the tool do not contain it. A
    // parameter therefore does not increase the weight of a word: a tool with a parameter for an
    // order id does not necessarily find orders.
    let mut parameters = Vec::new();
    add_parameter_stems(&tool.input_schema, MAX_SCHEMA_DEPTH, words, &mut parameters);
    let mut known: HashSet<String> = stems.iter().cloned().collect();
    stems.extend(
        parameters
            .into_iter()
            .filter(|stem| known.insert(stem.clone())),
    );
    stems.join(" ")
}

/// Adds the word stems of parameter names, descriptions and allowed values in a schema, down to
/// `depth` levels of nesting.
fn add_parameter_stems(
    schema: &Value,
    depth: usize,
    words: &StemSplitter,
    stems: &mut Vec<String>,
) {
    if depth == 0 {
        return;
    }
    if let Some(Value::Object(properties)) = schema.get("properties") {
        for (name, property) in properties {
            words.append_stems(name, stems);
            if let Some(Value::String(text)) = property.get("description") {
                words.append_stems(text, stems);
            }
            add_parameter_stems(property, depth - 1, words, stems);
        }
    }
    if let Some(Value::Array(choices)) = schema.get("enum") {
        for choice in choices.iter().filter_map(Value::as_str) {
            words.append_stems(choice, stems);
        }
    }
    if let Some(items) = schema.get("items") {
        add_parameter_stems(items, depth - 1, words, stems);
    }
}
