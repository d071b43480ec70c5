//! The tool `get_meta_knowledge_graph`, which lists the relations that the service supports.

use std::{fmt::Write as _, sync::Arc, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::{sync::Mutex, time::Instant};

use super::{
    client::ServiceClient,
    query_output::prepend_notice,
    trapi::{MetaKnowledgeGraph, Relation},
};
use crate::{
    graph::{
        knowledge_graph::{NameCount, count_names, describe_counts},
        model::strip_biolink,
    },
    text::{format_quantity, join_first_items},
    tool::{BundledTool, ToolError, ToolOutput, ToolResult, default_number},
};

/// Time for which the list of relations is cached. The list has several megabytes, and it changes
/// only when the service is updated.
const CACHE_TIME: Duration = Duration::from_hours(1);

struct CachedMetaKnowledgeGraph {
    client: ServiceClient,
    cache: Mutex<Option<(Instant, Arc<MetaKnowledgeGraph>)>>,
}

impl CachedMetaKnowledgeGraph {
    /// Returns the list of relations. If it belongs to the sample data, also returns a notice.
    async fn get_or_fetch_graph(
        &self,
    ) -> Result<(Arc<MetaKnowledgeGraph>, Option<String>), ToolError> {
        // The lock is held during the request, so that concurrent calls send only one request.
        let mut cache = self.cache.lock().await;
        if let Some((since, graph)) = cache.as_ref()
            && since.elapsed() < CACHE_TIME
        {
            return Ok((Arc::clone(graph), None));
        }
        let graph: Arc<MetaKnowledgeGraph> =
            match self.client.get_json("meta_knowledge_graph", &[]).await {
                Ok(graph) => Arc::new(graph),
                Err(failure) => {
                    let (sample, notice) = self.client.sample_for(failure)?;
                    return Ok((Arc::new(sample.meta_knowledge_graph()), Some(notice)));
                }
            };
        *cache = Some((Instant::now(), Arc::clone(&graph)));
        Ok((graph, None))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    /// Lists only relations whose subject has this category, such as `biolink:Gene`.
    subject_category: Option<String>,
    /// Lists only relations with this predicate, such as `biolink:affects`.
    predicate: Option<String>,
    /// Lists only relations whose object has this category, such as `biolink:Disease`.
    object_category: Option<String>,
    /// Maximum number of relations to list.
    #[serde(default = "default_number::<50>")]
    #[schemars(range(min = 1, max = 500))]
    limit: usize,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Output {
    /// Number of relations that match the filters, including those that are not listed.
    matching: usize,
    /// The matching relations, at most `limit`.
    relations: Vec<Relation>,
    /// Numbers of matching relations by predicate.
    predicates: Vec<NameCount>,
    /// The categories of the listed relations with their id prefixes.
    categories: Vec<CategoryIdPrefixes>,
    /// States that these are bundled sample data, because the service cannot be reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    notice: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct CategoryIdPrefixes {
    /// The name of the category, such as `biolink:Gene`.
    category: String,
    /// The prefixes of ids in this category, the preferred one first.
    id_prefixes: Vec<String>,
}

pub(super) fn meta_knowledge_graph_tool(client: &ServiceClient) -> BundledTool {
    let meta = Arc::new(CachedMetaKnowledgeGraph {
        client: client.clone(),
        cache: Mutex::new(None),
    });
    BundledTool::new(
        "get_meta_knowledge_graph",
        "Supported relations",
        "Lists the relations that BioThings Explorer (BTE) supports: categories of subjects and \
         objects with predicates, and the id prefixes of each category. Use a filter, because \
         there are thousands of relations.",
        meta,
        run_tool,
    )
    .map_annotations(|it| it.open_world(true))
}

async fn run_tool(meta: Arc<CachedMetaKnowledgeGraph>, input: Input) -> ToolResult<Output> {
    let (graph, notice) = meta.get_or_fetch_graph().await?;
    let matches = |filter: &Option<String>, value: &str| {
        let filter = filter.as_deref().map(strip_biolink);
        filter.is_none_or(|filter| filter.eq_ignore_ascii_case(strip_biolink(value)))
    };
    let relations = graph.edges.iter().filter(|relation| {
        matches(&input.subject_category, &relation.subject)
            && matches(&input.predicate, &relation.predicate)
            && matches(&input.object_category, &relation.object)
    });
    let matching: Vec<&Relation> = relations.collect();
    let predicates = count_names(matching.iter().map(|edge| strip_biolink(&edge.predicate)));
    let relations = &matching[..matching.len().min(input.limit)];
    let used = |category: &str| {
        let mut relations = relations.iter();
        relations.any(|it| it.subject == category || it.object == category)
    };
    let categories = graph.nodes.iter().filter(|(category, _)| used(category));
    let categories = categories.map(|(category, node)| CategoryIdPrefixes {
        category: category.clone(),
        id_prefixes: node.id_prefixes.clone(),
    });
    let data = Output {
        matching: matching.len(),
        relations: relations.iter().copied().cloned().collect(),
        predicates,
        categories: categories.collect(),
        notice,
    };
    let text = prepend_notice(data.notice.as_deref(), describe_relations(&data));
    Ok(ToolOutput { text, data })
}

fn describe_relations(data: &Output) -> String {
    if data.matching == 0 {
        return "No relation matches. Omit a part of the filter. Categories have the form \
            biolink:Gene, predicates the form biolink:affects."
            .to_owned();
    }
    let mut text = format!(
        "{} found.\nPredicates: {}.\n",
        format_quantity(data.matching, "relation"),
        describe_counts(&data.predicates, 40)
    );
    if data.relations.len() < data.matching {
        let _ = write!(text, "The first {}:", data.relations.len());
    } else {
        text.push_str("Relations:");
    }
    for relation in &data.relations {
        let _ = write!(
            text,
            "\n- {} –{}→ {}",
            strip_biolink(&relation.subject),
            strip_biolink(&relation.predicate),
            strip_biolink(&relation.object)
        );
    }
    text.push_str("\nPrefixes of ids:");
    for category in &data.categories {
        let name = strip_biolink(&category.category);
        let prefixes = join_first_items(&category.id_prefixes, 8);
        let _ = write!(text, "\n- {name}: {prefixes}");
    }
    text
}
