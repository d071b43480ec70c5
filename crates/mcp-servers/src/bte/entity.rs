//! The tools `query_bte_getall` and `query_bte_by_categories`: the relations of one entity.

use std::collections::BTreeMap;

use indexmap::IndexSet;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use super::{
    BteToolState,
    biolink::{CATEGORIES, PREDICATES, is_curie},
    query_output::{Output, OutputOptions, build_output},
    trapi::{QueryEdge, QueryGraph, QueryNode},
};
use crate::{
    graph::{database_context::DatabaseContext, model::strip_biolink},
    text::truncate,
    tool::{BundledTool, ToolResult, default_number},
};

/// Maximum number of categories in one query. A call with more categories sends several queries,
/// because a large query is slow and returns a large response. If one query fails, the call still
/// returns the results of the others.
const MAX_CATEGORIES: usize = 4;

const ADVICE: &str = "Check that the id has the prefix that BioThings Explorer uses (genes: \
    NCBIGene, diseases: MONDO, drugs: CHEBI or CHEMBL.COMPOUND), or use query_bte, which supports \
    any predicate in both directions.";

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    /// The CURIE of the thing to query, such as `NCBIGene:695` or `MONDO:0005148`.
    #[schemars(length(min = 1, max = 200))]
    entity_id: String,
    /// The categories of the things that the query finds.
    #[schemars(schema_with = "categories_schema")]
    categories: Option<IndexSet<String>>,
    /// Maximum number of results to list.
    #[serde(default = "default_number::<25>")]
    #[schemars(range(min = 1, max = 100))]
    limit: usize,
    /// Adds all results to the knowledge graph of this conversation.
    add_to_graph: Option<bool>,
    /// Added by the host, not by the model: the conversation to which this call belongs.
    #[schemars(extend("writeOnly" = true))]
    database_context: Option<DatabaseContext>,
}

fn categories_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": {"type": "string", "enum": CATEGORIES},
        "minItems": 1,
        "maxItems": CATEGORIES.len(),
    })
}

pub(super) fn query_bte_getall_tool(bte: &BteToolState) -> BundledTool {
    let tool = bte.create_query_tool(
        "query_bte_getall",
        "Everything related to a thing",
        "Queries BioThings Explorer (BTE) for everything that is related to one thing: \
         biological processes, genes, proteins, gene and protein families, diseases and \
         phenotypes, anatomy, RNA products, chemical mixtures, small molecules, polypeptides. \
         Use it for all relations, and query_bte_by_categories for particular categories. \
         Predicates: affected_by, affects, interacts_with, participates_in, derives_from, \
         derives_into. Results come with sources and publications, the best first.",
        run_tool,
    );
    tool.without_argument("categories")
}

pub(super) fn query_by_categories_tool(bte: &BteToolState) -> BundledTool {
    bte.create_query_tool(
        "query_bte_by_categories",
        "Things of some kinds related to a thing",
        "Queries BioThings Explorer (BTE) for things of particular categories, such as genes or \
         diseases, that are related to one thing. Example: all genes connected to \
         MONDO:0005148. Predicates: affected_by, affects, interacts_with, participates_in, \
         derives_from, derives_into. Results come with sources and publications, the best \
         first.",
        run_tool,
    )
}

async fn run_tool(bte: BteToolState, input: Input) -> ToolResult<Output> {
    let entity_id = &input.entity_id;
    if !is_curie(entity_id) {
        return Err(format!(
            "entityId is {:?}; it must be a CURIE: a prefix, a colon and an id, \
                 such as NCBIGene:4353 for the gene MPO or MONDO:0005148 for a disease.",
            truncate(entity_id, 60)
        )
        .into());
    }
    let (categories, kinds) = match &input.categories {
        Some(categories) => {
            let kinds: Vec<&str> = categories.iter().map(|it| strip_biolink(it)).collect();
            let categories = categories.iter().map(String::as_str).collect();
            (categories, kinds.join(", "))
        }
        None => (CATEGORIES.to_vec(), "things of all kinds".to_owned()),
    };
    let queries = categories.chunks(MAX_CATEGORIES);
    let queries = queries.map(|batch| build_query_graph(entity_id, batch));
    let findings = bte.run_queries(queries.collect()).await?;
    let options = OutputOptions {
        description: format!("{kinds} related to {entity_id}"),
        advice: ADVICE,
        limit: input.limit,
        add_to_graph: input.add_to_graph,
        context: input.database_context.as_ref(),
    };
    build_output(&bte, findings, options).await
}

fn build_query_graph(entity_id: &str, categories: &[&str]) -> QueryGraph {
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
