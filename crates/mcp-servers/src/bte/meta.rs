//! `get_meta_knowledge_graph`: what can be asked.

use std::{fmt::Write as _, sync::Arc, time::Duration};

use rmcp::model::ToolAnnotations;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::{sync::Mutex, time::Instant};

use super::{client::ServiceClient, trapi::MetaKnowledgeGraph};
use crate::{
    graph::{Count, counted, listed, many, model::plain},
    tool::{Answer, BundledTool, ToolError},
};

/// How long an answer is kept: it has megabytes, and changes when the service is updated.
const KEPT: Duration = Duration::from_hours(1);

pub(super) struct GetMetaKnowledgeGraph {
    client: Arc<ServiceClient>,
    kept: Mutex<Option<(Instant, Arc<MetaKnowledgeGraph>)>>,
}

impl GetMetaKnowledgeGraph {
    pub(super) fn new(client: Arc<ServiceClient>) -> Self {
        Self {
            client,
            kept: Mutex::new(None),
        }
    }

    async fn read(&self) -> Result<Arc<MetaKnowledgeGraph>, ToolError> {
        // Held while it is read, so that several calls at once read it once.
        let mut kept = self.kept.lock().await;
        if let Some((since, graph)) = kept.as_ref()
            && since.elapsed() < KEPT
        {
            return Ok(Arc::clone(graph));
        }
        let graph = self.client.meta_knowledge_graph().await;
        let graph = graph.map_err(|failure| ToolError::Refused(failure.to_string()))?;
        let graph = Arc::new(graph);
        *kept = Some((Instant::now(), Arc::clone(&graph)));
        Ok(graph)
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    /// Only relations of things of this category, such as `biolink:Gene`.
    subject_category: Option<String>,
    /// Only this predicate, such as `biolink:affects`.
    predicate: Option<String>,
    /// Only relations to things of this category, such as `biolink:Disease`.
    object_category: Option<String>,
    /// How many relations to list at most.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 500))]
    limit: usize,
}

fn default_limit() -> usize {
    50
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Output {
    /// How many relations there are that fit, listed or not.
    matching: usize,
    /// The relations that can be asked for.
    relations: Vec<Relation>,
    /// The predicates of all relations that fit, with how many relations have each.
    predicates: Vec<Count>,
    /// The categories of things that can be asked about and the prefixes of their ids: those of the
    /// listed relations.
    categories: Vec<CategoryOutput>,
}

#[derive(Serialize, JsonSchema)]
struct Relation {
    /// The category of the subject.
    subject: String,
    /// How it is related to the object.
    predicate: String,
    /// The category of the object.
    object: String,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct CategoryOutput {
    /// The category.
    category: String,
    /// The prefixes of ids, the preferred one first.
    id_prefixes: Vec<String>,
}

impl BundledTool for GetMetaKnowledgeGraph {
    type Input = Input;
    type Output = Output;

    const NAME: &'static str = "get_meta_knowledge_graph";
    const TITLE: &'static str = "What can be asked";
    const DESCRIPTION: &'static str = "Says what BioThings Explorer (BTE) can be asked: which \
        categories of things are related by which predicates, and which prefixes the ids of each \
        category have. Filter it, there are thousands of relations.";

    fn annotations(&self) -> ToolAnnotations {
        ToolAnnotations::new()
            .read_only(true)
            .destructive(false)
            .idempotent(true)
            .open_world(true)
    }

    async fn call(&self, input: Input) -> Result<Answer<Output>, ToolError> {
        let graph = self.read().await?;
        let fits = |wish: &Option<String>, value: &str| {
            let wish = wish.as_deref().map(plain);
            wish.is_none_or(|wish| wish.eq_ignore_ascii_case(plain(value)))
        };
        let fitting: Vec<_> = graph
            .edges
            .good
            .iter()
            .filter(|edge| {
                fits(&input.subject_category, &edge.subject)
                    && fits(&input.predicate, &edge.predicate)
                    && fits(&input.object_category, &edge.object)
            })
            .collect();
        let predicates = counted(fitting.iter().map(|edge| plain(&edge.predicate)));
        let listed: Vec<_> = fitting.iter().take(input.limit).collect();
        let relations = listed.iter().map(|edge| Relation {
            subject: edge.subject.clone(),
            predicate: edge.predicate.clone(),
            object: edge.object.clone(),
        });
        let used = |category: &str| {
            let mut ends = listed.iter().flat_map(|edge| [&edge.subject, &edge.object]);
            ends.any(|end| end == category)
        };
        let categories = graph
            .nodes
            .good
            .iter()
            .filter(|(category, _)| used(category));
        let categories = categories.map(|(category, node)| CategoryOutput {
            category: category.clone(),
            id_prefixes: node.id_prefixes.clone(),
        });
        let data = Output {
            matching: fitting.len(),
            relations: relations.collect(),
            predicates,
            categories: categories.collect(),
        };
        Ok(Answer {
            text: describe(&data),
            data,
        })
    }
}

fn describe(data: &Output) -> String {
    if data.matching == 0 {
        return "No relation fits. Leave out a part of the filter; categories are written like \
                biolink:Gene, predicates like biolink:affects."
            .to_owned();
    }
    let mut text = format!(
        "{} can be asked for.\nPredicates: {}.\n",
        many(data.matching, "relation"),
        listed(&data.predicates, 40)
    );
    if data.relations.len() < data.matching {
        // Writing to a string cannot fail.
        let _ = write!(text, "The first {}:", data.relations.len());
    } else {
        text.push_str("They are:");
    }
    for relation in &data.relations {
        let _ = write!(
            text,
            "\n- {} –{}→ {}",
            plain(&relation.subject),
            plain(&relation.predicate),
            plain(&relation.object)
        );
    }
    text.push_str("\nPrefixes of ids:");
    for category in &data.categories {
        let prefixes: Vec<&str> = category
            .id_prefixes
            .iter()
            .take(8)
            .map(String::as_str)
            .collect();
        let _ = write!(
            text,
            "\n- {}: {}",
            plain(&category.category),
            prefixes.join(", ")
        );
    }
    text
}
