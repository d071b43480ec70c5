//! Search, list and display of recipes.

use serde_json::Value;

use crate::support::Place;

fn with_recipe(text: &str) -> Place {
    let place = Place::new();
    std::fs::create_dir(place.path().join("recipes")).unwrap();
    place.with_file("recipes/orders.yaml", text)
}

#[tokio::test]
async fn recipes_are_listed_as_text_and_json() {
    let place = with_recipe("description: About orders\nstrategy: gather-format\n");
    let done = place.run(["recipes"]).await.exits(0);
    insta::assert_snapshot!(done.stdout.replace('\\', "/"));
    let rows = place.run(["recipes", "list", "-o", "json"]).await.json();
    assert_eq!(rows[0]["name"], "orders");
    assert_eq!(rows[0]["strategy"], "gather-format");
    assert_eq!(rows[1]["source"], "shipped");
    assert!(
        rows.as_array()
            .unwrap()
            .iter()
            .all(|row| row["error"].is_null())
    );
}

#[tokio::test]
async fn a_recipe_is_shown_unchanged() {
    let shown = Place::new()
        .run(["recipes", "show", "customer-service"])
        .await;
    assert_eq!(shown.code, 0, "{shown}");
    // The output is the same recipe.
    let place = with_recipe(&shown.stdout);
    let own = place
        .run(["recipes", "show", "recipes/orders.yaml", "-o", "json"])
        .await
        .json();
    let shipped = place
        .run(["recipes", "show", "customer-service", "-o", "json"])
        .await
        .json();
    assert_eq!(own["recipe"], shipped["recipe"]);
    assert!(shipped["prompt"].as_str().unwrap().contains("# Thinking"));
    assert_eq!(
        shipped["recipe"]["policy"]["requires_approval"],
        Value::from(vec!["create_support_ticket"])
    );
}

#[tokio::test]
async fn an_invalid_recipe_is_reported_and_hides_no_other() {
    let place = with_recipe("instrucions: x\n");
    let done = place.run(["recipes"]).await.exits(0);
    done.stderr_contains("did you mean `instructions`?");
    assert!(done.stdout.contains("general-chat"), "{done}");
    place.run(["recipes", "show", "orders"]).await.exits(2);
    let done = place.run(["recipes", "show", "custmer-service"]).await;
    assert_eq!(done.code, 2, "{done}");
    done.stderr_contains("did you mean `customer-service`?");
}
