//! `query_bte_getall` and `query_bte_by_categories`: the relations of one thing.

use std::collections::BTreeMap;

use indexmap::IndexSet;
use rmcp::model::{JsonObject, ToolAnnotations};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use super::{
    Bte,
    answer::{Output, OutputOptions, output},
    biolink::{CATEGORIES, PREDICATES, is_curie},
    trapi::{QueryEdge, QueryGraph, QueryNode},
};
use crate::{
    graph::{context::DatabaseContext, model::without_prefix},
    text::truncate,
    tool::{BundledTool, ToolError, ToolOutput},
};

/// Maximum number of categories in one query. One query for all categories would be slow and its
/// response large, and it could only fail as a whole.
const MAX_CATEGORIES: usize = 4;

const ADVICE: &str = "Check that the id has the prefix that BioThings Explorer uses (genes: NCBIGene, \
    diseases: MONDO, drugs: CHEBI or CHEMBL.COMPOUND), or use query_bte, which supports any \
    predicate in both directions.";

pub(super) struct GetAll {
    pub(super) bte: Bte,
}

pub(super) struct ByCategories {
    pub(super) bte: Bte,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct AllInput {
    /// The CURIE of the thing, such as `NCBIGene:695` or `MONDO:0005148`.
    #[schemars(length(min = 1, max = 200))]
    entity_id: String,
    /// Maximum number of results to list.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100))]
    limit: usize,
    /// Adds all results to the knowledge graph of this conversation.
    #[serde(default)]
    add_to_graph: bool,
    /// Added by the host: the conversation of this call.
    #[schemars(extend("writeOnly" = true))]
    database_context: Option<DatabaseContext>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct CategoriesInput {
    /// The CURIE of the thing, such as `NCBIGene:695` or `MONDO:0005148`.
    #[schemars(length(min = 1, max = 200))]
    entity_id: String,
    /// The categories of the results.
    #[schemars(schema_with = "categories_schema")]
    categories: IndexSet<String>,
    /// Maximum number of results to list.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100))]
    limit: usize,
    /// Adds all results to the knowledge graph of this conversation.
    #[serde(default)]
    add_to_graph: bool,
    /// Added by the host: the conversation of this call.
    #[schemars(extend("writeOnly" = true))]
    database_context: Option<DatabaseContext>,
}

fn default_limit() -> usize {
    25
}

fn categories_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": {"type": "string", "enum": CATEGORIES},
        "minItems": 1,
        "maxItems": CATEGORIES.len(),
    })
}

impl BundledTool for GetAll {
    type Input = AllInput;
    type Output = Output;

    const NAME: &'static str = "query_bte_getall";
    const TITLE: &'static str = "Everything related to a thing";
    const DESCRIPTION: &'static str = "Queries BioThings Explorer (BTE) for everything that is related \
        to one thing: biological processes, genes, proteins, gene and protein families, diseases and \
        phenotypes, anatomy, RNA products, chemical mixtures, small molecules, polypeptides. Use it \
        for all relations, and query_bte_by_categories for particular categories. Predicates: \
        affected_by, affects, interacts_with, participates_in, derives_from, derives_into. Results come with sources and publications, the best first.";

    fn annotations(&self) -> ToolAnnotations {
        self.bte.annotations()
    }

    fn adjust_input(&self, schema: &mut JsonObject) {
        self.bte.adjust_input(schema);
    }

    async fn call(&self, input: Self::Input) -> Result<ToolOutput<Output>, ToolError> {
        let options = OutputOptions {
            description: format!("things of all kinds related to {}", input.entity_id),
            advice: ADVICE,
            limit: input.limit,
            add_to_graph: input.add_to_graph,
            context: input.database_context.as_ref(),
        };
        related(&self.bte, &input.entity_id, &CATEGORIES, options).await
    }
}

impl BundledTool for ByCategories {
    type Input = CategoriesInput;
    type Output = Output;

    const NAME: &'static str = "query_bte_by_categories";
    const TITLE: &'static str = "Things of some kinds related to a thing";
    const DESCRIPTION: &'static str = "Queries BioThings Explorer (BTE) for things of particular categories, \
        such as genes or diseases, that are related to one thing. Example: all genes connected to \
        MONDO:0005148. Predicates: affected_by, affects, interacts_with, participates_in, \
        derives_from, derives_into. Results come with sources and publications, the best first.";

    fn annotations(&self) -> ToolAnnotations {
        self.bte.annotations()
    }

    fn adjust_input(&self, schema: &mut JsonObject) {
        self.bte.adjust_input(schema);
    }

    async fn call(&self, input: Self::Input) -> Result<ToolOutput<Output>, ToolError> {
        let categories: Vec<&str> = input.categories.iter().map(String::as_str).collect();
        let kinds: Vec<&str> = categories.iter().map(|it| without_prefix(it)).collect();
        let options = OutputOptions {
            description: format!("{} related to {}", kinds.join(", "), input.entity_id),
            advice: ADVICE,
            limit: input.limit,
            add_to_graph: input.add_to_graph,
            context: input.database_context.as_ref(),
        };
        related(&self.bte, &input.entity_id, &categories, options).await
    }
}

async fn related(
    bte: &Bte,
    entity_id: &str,
    categories: &[&str],
    options: OutputOptions<'_>,
) -> Result<ToolOutput<Output>, ToolError> {
    if !is_curie(entity_id) {
        return Err(ToolError::Refused(format!(
            "entityId is {:?}; it must be a CURIE: a prefix, a colon and an id, \
             such as NCBIGene:4353 for the gene MPO or MONDO:0005148 for a disease.",
            truncate(entity_id, 60)
        )));
    }
    let queries = categories
        .chunks(MAX_CATEGORIES)
        .map(|batch| query_graph(entity_id, batch));
    let findings = bte.query(queries.collect()).await?;
    output(bte, findings, options).await
}

fn query_graph(entity_id: &str, categories: &[&str]) -> QueryGraph {
    let known = QueryNode {
        ids: vec![entity_id.to_owned()],
        categories: Vec::new(),
    };
    let unknown = QueryNode {
        ids: Vec::new(),
        categories: categories.iter().map(|it| (*it).to_owned()).collect(),
    };
    let edge = QueryEdge {
        subject: "n0".to_owned(),
        object: "n1".to_owned(),
        predicates: PREDICATES.map(str::to_owned).to_vec(),
    };
    QueryGraph {
        nodes: BTreeMap::from([("n0".to_owned(), known), ("n1".to_owned(), unknown)]),
        edges: BTreeMap::from([("e0".to_owned(), edge)]),
    }
}
