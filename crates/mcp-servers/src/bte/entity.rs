//! `query_bte_getall` and `query_bte_by_categories`: what is related to one thing.

use std::collections::BTreeMap;

use rmcp::model::{JsonObject, ToolAnnotations};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    Bte,
    answer::{Output, Wish, answer},
    biolink::{Category, PREDICATES, is_curie},
    trapi::{QueryEdge, QueryGraph, QueryNode},
};
use crate::{
    graph::{context::DatabaseContext, model::cut},
    tool::{Answer, BundledTool, ToolError},
};

/// Categories in one question. All at once would take too long and make answers too large; one part
/// that fails does not spoil the others.
const BATCH: usize = 4;

const ADVICE: &str = "Check that the id is the one that BioThings Explorer uses (genes: NCBIGene, \
    diseases: MONDO, drugs: CHEBI or CHEMBL.COMPOUND), or ask with query_bte, which can look for \
    any predicate and from either side.";

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
    /// How many results to list at most.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100))]
    limit: usize,
    /// Adds everything that is found to the knowledge graph of this conversation.
    #[serde(default)]
    add_to_graph: bool,
    /// Added by the host: which conversation this is.
    #[schemars(extend("writeOnly" = true))]
    database_context: Option<DatabaseContext>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct CategoriesInput {
    /// The CURIE of the thing, such as `NCBIGene:695` or `MONDO:0005148`.
    #[schemars(length(min = 1, max = 200))]
    entity_id: String,
    /// The kinds of things to look for.
    #[schemars(length(min = 1, max = 11))]
    categories: Vec<Category>,
    /// How many results to list at most.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100))]
    limit: usize,
    /// Adds everything that is found to the knowledge graph of this conversation.
    #[serde(default)]
    add_to_graph: bool,
    /// Added by the host: which conversation this is.
    #[schemars(extend("writeOnly" = true))]
    database_context: Option<DatabaseContext>,
}

fn default_limit() -> usize {
    25
}

impl BundledTool for GetAll {
    type Input = AllInput;
    type Output = Output;

    const NAME: &'static str = "query_bte_getall";
    const TITLE: &'static str = "Everything related to a thing";
    const DESCRIPTION: &'static str = "Asks BioThings Explorer (BTE) for everything that is related \
        to one thing: biological processes, genes, proteins, gene and protein families, diseases and \
        phenotypes, anatomy, RNA products, chemical mixtures, small molecules, polypeptides. Use it \
        for comprehensive connections, and query_bte_by_categories if particular kinds are asked \
        for. Predicates: affected_by, affects, interacts_with, participates_in, derives_from, \
        derives_into. Results come with sources and publications, the best first.";

    fn annotations(&self) -> ToolAnnotations {
        self.bte.annotations()
    }

    fn adjust_input(&self, schema: &mut JsonObject) {
        self.bte.adjust_input(schema);
    }

    async fn call(&self, input: Self::Input) -> Result<Answer<Output>, ToolError> {
        let wish = Wish {
            about: format!("things of all kinds related to {}", input.entity_id),
            advice: ADVICE,
            limit: input.limit,
            add: input.add_to_graph,
            context: input.database_context.as_ref(),
        };
        related(&self.bte, &input.entity_id, &Category::ALL, wish).await
    }
}

impl BundledTool for ByCategories {
    type Input = CategoriesInput;
    type Output = Output;

    const NAME: &'static str = "query_bte_by_categories";
    const TITLE: &'static str = "Things of some kinds related to a thing";
    const DESCRIPTION: &'static str = "Asks BioThings Explorer (BTE) for things of particular kinds, \
        such as genes or diseases, that are related to one thing. Example: all genes connected to \
        MONDO:0005148. Predicates: affected_by, affects, interacts_with, participates_in, \
        derives_from, derives_into. Results come with sources and publications, the best first.";

    fn annotations(&self) -> ToolAnnotations {
        self.bte.annotations()
    }

    fn adjust_input(&self, schema: &mut JsonObject) {
        self.bte.adjust_input(schema);
    }

    async fn call(&self, input: Self::Input) -> Result<Answer<Output>, ToolError> {
        let mut categories: Vec<Category> = Vec::new();
        for category in input.categories {
            if !categories.contains(&category) {
                categories.push(category);
            }
        }
        let kinds: Vec<&str> = categories
            .iter()
            .map(|it| crate::graph::model::plain(it.as_str()))
            .collect();
        let wish = Wish {
            about: format!("{} related to {}", kinds.join(", "), input.entity_id),
            advice: ADVICE,
            limit: input.limit,
            add: input.add_to_graph,
            context: input.database_context.as_ref(),
        };
        related(&self.bte, &input.entity_id, &categories, wish).await
    }
}

async fn related(
    bte: &Bte,
    entity_id: &str,
    categories: &[Category],
    wish: Wish<'_>,
) -> Result<Answer<Output>, ToolError> {
    if !is_curie(entity_id) {
        return Err(ToolError::Refused(format!(
            "entityId is {:?}; it must be a CURIE: where the id is from, a colon, and the id there, \
             such as NCBIGene:4353 for the gene MPO or MONDO:0005148 for a disease.",
            cut(entity_id, 60)
        )));
    }
    let questions = categories
        .chunks(BATCH)
        .map(|batch| question(entity_id, batch));
    let findings = bte.ask(questions.collect()).await?;
    answer(bte, findings, wish).await
}

fn question(entity_id: &str, categories: &[Category]) -> QueryGraph {
    let known = QueryNode {
        ids: vec![entity_id.to_owned()],
        categories: Vec::new(),
    };
    let unknown = QueryNode {
        ids: Vec::new(),
        categories: categories.iter().map(|it| it.as_str().to_owned()).collect(),
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
