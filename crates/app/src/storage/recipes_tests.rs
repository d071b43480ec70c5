use std::fs;

use switchboard_orchestration::{recipe::ReasoningStyle, strategy::Strategy};

use super::*;

/// A working directory and a configuration folder, with recipes in them.
struct Place {
    folder: tempfile::TempDir,
    environment: Environment,
}

impl Place {
    fn with(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut environment = Environment::default();
        environment.working_dir = folder.path().join("project");
        environment.config_dir = Some(folder.path().join("user"));
        for (name, text) in files {
            let file = folder.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        Self {
            folder,
            environment,
        }
    }

    fn find(&self, name: &str) -> FoundRecipe {
        find_recipe(name, &self.environment).unwrap()
    }

    /// Returns the error message without the path of the temporary folder, which differs between
    /// runs.
    fn error(&self, name: &str) -> String {
        let error = find_recipe(name, &self.environment)
            .unwrap_err()
            .to_string();
        error.replace(&self.folder.path().display().to_string(), "")
    }
}

#[test]
fn the_shipped_recipes_say_what_they_should() {
    let place = Place::with(&[]);
    for (name, _) in SHIPPED {
        let found = place.find(name);
        assert_eq!(found.source, RecipeSource::Shipped);
        let recipe = found.recipe;
        assert_eq!(recipe.name, name);
        assert!(recipe.title.is_some() && recipe.description.is_some());
        assert_ne!(recipe.reasoning.style, ReasoningStyle::None);
        assert!(recipe.policy.max_tools_per_response.is_some());
        let prompt = recipe.system_prompt().unwrap();
        // The prompt is short, because every request pays for its tokens.
        assert!(prompt.len() < 4_000, "{name}: {}", prompt.len());
        assert!(prompt.contains("# Thinking"), "{prompt}");
    }
}

#[test]
fn the_first_recipe_of_a_name_counts() {
    let place = Place::with(&[
        (
            "project/recipes/orders.yaml",
            "instructions: from the project",
        ),
        (
            "user/recipes/orders.json",
            r#"{"instructions": "from the user"}"#,
        ),
        ("user/recipes/general-chat.toml", "instructions = 'mine'"),
        (
            "user/recipes/file.yaml",
            "name: inside\ninstructions: by its own name",
        ),
        ("user/recipes/notes.txt", "no recipe"),
    ]);
    let orders = place.find("orders");
    assert_eq!(
        orders.recipe.instructions.as_deref(),
        Some("from the project")
    );
    assert_eq!(orders.recipe.name, "orders");
    assert_eq!(
        place.find("general-chat").recipe.instructions.as_deref(),
        Some("mine")
    );
    assert_eq!(
        place.find("inside").recipe.instructions.as_deref(),
        Some("by its own name")
    );
    let entries = list_recipes(&place.environment).unwrap();
    let names: Vec<_> = entries.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "orders",
            "file",
            "general-chat",
            "customer-service",
            "code-discussion",
            "graph-chat"
        ]
    );
}

#[test]
fn a_file_is_read_wherever_it_is_and_nothing_is_filled_in() {
    let place = Place::with(&[(
        "project/elsewhere/mine.yaml",
        "strategy: gather-format\ninstructions: 'Write ${HOME}.'",
    )]);
    for written in ["elsewhere/mine.yaml", "./elsewhere/mine.yaml"] {
        let recipe = place.find(written).recipe;
        assert_eq!(recipe.name, "mine");
        assert!(matches!(recipe.strategy, Some(Strategy::GatherFormat(_))));
        assert_eq!(recipe.instructions.as_deref(), Some("Write ${HOME}."));
    }
    // `find_recipe_by_name` does not accept paths.
    let by_name = find_recipe_by_name("../elsewhere/mine.yaml", &place.environment);
    assert!(
        by_name
            .unwrap_err()
            .to_string()
            .starts_with("unknown recipe")
    );
    assert!(find_recipe_by_name("../elsewhere/mine", &place.environment).is_err());
}

#[test]
fn errors_name_the_file() {
    let place = Place::with(&[
        ("project/recipes/bad.yaml", "instrucions: x"),
        ("project/recipes/broken.json", "{"),
        ("project/recipes/list.yaml", "- a"),
    ]);
    let names = [
        "bad",
        "broken",
        "list",
        "custmer-service",
        "nothing.yaml",
        "a/b.txt",
    ];
    let errors = names.map(|name| place.error(name)).join("\n");
    insta::assert_snapshot!(errors);
    // An invalid recipe does not prevent the use of the other recipes.
    assert!(find_recipe("code-discussion", &place.environment).is_ok());
    let entries = list_recipes(&place.environment).unwrap();
    assert_eq!(
        entries.iter().filter(|entry| entry.recipe.is_err()).count(),
        3
    );
}

/// Checks that every provider can enforce the complete answer schema of the formatting phase. A
/// part of the schema that a provider does not support would need repairs of answers.
#[test]
fn every_wire_can_hold_an_answer_to_the_formatters_form() {
    use switchboard_orchestration::strategy::formatter;
    use switchboard_providers_common::schema::{Dialect, compile};
    let schema = formatter::answer_schema();
    for dialect in [
        Dialect::AnthropicStrict,
        Dialect::OpenAiStrict,
        Dialect::GeminiJsonSchema,
        Dialect::OllamaFormat,
    ] {
        let compiled = compile(&schema, dialect);
        let lost: Vec<_> = compiled.lossy_schema_changes().collect();
        assert!(lost.is_empty(), "{}: {lost:?}", dialect.name());
        assert!(
            compiled.accepts_same_values(),
            "{}: {:?}",
            dialect.name(),
            compiled.changes
        );
    }
}
