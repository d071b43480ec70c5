//! Ranks tools by the words that they share with a question.

use std::{collections::HashSet, sync::Arc};

use bm25::{Embedder, EmbedderBuilder, Scorer, Tokenizer};
use switchboard_domain::ToolDefinition;

use crate::{
    tool_parameters::read_parameters,
    word_stems::{split_words, stem_words},
};

/// Minimum share (0 to 1) of the question's word stems that a tool's name, title, description and
/// parameters must contain. A tool below this share is called only if the `tool_choice` of the
/// request forces a call.
const MIN_COVERAGE: f64 = 0.3;
/// Minimum number of words that a question and a tool must share if none of these words is in the
/// tool's name or title. A question with fewer words must share all its words with the tool.
const MIN_SHARED_WORDS: usize = 2;

/// Weight, in the ranking of tools, of a word in a tool's name. A word in the title, the
/// description or a parameter has the weight 1.
const NAME_WEIGHT: usize = 3;

/// Tokenizer for documents that consist of word stems separated by spaces.
#[derive(Debug, Clone, Copy, Default)]
struct SpaceTokenizer;

impl Tokenizer for SpaceTokenizer {
    fn tokenize(&self, text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }
}

/// Returns the tools that share words with the question, the best match first.
pub(crate) fn rank_tools<'a>(
    question: &str,
    tools: &'a [Arc<ToolDefinition>],
) -> Vec<&'a Arc<ToolDefinition>> {
    let documents: Vec<String> = tools
        .iter()
        .map(|tool| tool_search_document(tool))
        .collect();
    let corpus: Vec<&str> = documents.iter().map(String::as_str).collect();
    let embedder: Embedder<u64, SpaceTokenizer> =
        EmbedderBuilder::with_tokenizer_and_fit_to_corpus(SpaceTokenizer, &corpus).build();
    let mut scorer = Scorer::<usize, u64>::new();
    for (index, document) in documents.iter().enumerate() {
        scorer.upsert(&index, embedder.embed(document));
    }
    let query = embedder.embed(&to_stems_and_numbers(question));
    let mut matches = scorer.matches(&query);
    matches.sort_by(|one, other| {
        other
            .score
            .total_cmp(&one.score)
            .then(one.id.cmp(&other.id))
    });
    matches
        .into_iter()
        .filter_map(|found| tools.get(found.id))
        .collect()
}

/// Returns whether a tool and a question share enough words to call the tool, according to
/// `MIN_COVERAGE` and `MIN_SHARED_WORDS`.
pub(crate) fn tool_matches_question(tool: &ToolDefinition, question: &str) -> bool {
    let asked: HashSet<String> = stem_words(question).into_iter().collect();
    let known: HashSet<String> = tool_search_document(tool)
        .split_whitespace()
        .map(str::to_owned)
        .collect();
    let shared = asked.intersection(&known).count();
    #[allow(clippy::cast_precision_loss, reason = "far below 2^52")]
    let coverage = shared as f64 / asked.len().max(1) as f64;
    let title = tool.title.as_deref().unwrap_or_default();
    let in_name = stem_words(&tool.name)
        .into_iter()
        .chain(stem_words(title))
        .any(|stem| asked.contains(&stem));
    let has_enough = in_name || shared >= MIN_SHARED_WORDS || shared == asked.len();
    coverage >= MIN_COVERAGE && has_enough
}

/// Returns the word stems and numbers of a text. Numbers distinguish `meter_1` from `meter_2`.
fn to_stems_and_numbers(text: &str) -> String {
    let mut terms = stem_words(text);
    let is_number = |word: &String| word.chars().all(char::is_numeric);
    terms.extend(split_words(text).into_iter().filter(is_number));
    terms.join(" ")
}

fn tool_search_document(tool: &ToolDefinition) -> String {
    let mut stems_of_tool = vec![to_stems_and_numbers(&tool.name); NAME_WEIGHT];
    stems_of_tool.extend(stem_words(tool.title.as_deref().unwrap_or_default()));
    stems_of_tool.extend(stem_words(&tool.description));
    for parameter in read_parameters(&tool.input_schema) {
        stems_of_tool.extend(stem_words(&parameter.name));
        stems_of_tool.extend(stem_words(parameter.description()));
    }
    stems_of_tool.join(" ")
}
