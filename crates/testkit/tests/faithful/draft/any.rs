//! Strategies that generate any conversation.

use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::{Map, Value, json};
use switchboard_domain::JsonObject;

use super::{Call, Draft, Gave, IDS, Minter, NAMES, Piece, Round, Shown, Step, WORDS};

fn words() -> impl Strategy<Value = String> {
    let known = [
        "Hello.",
        " and \n",
        "Grüße \u{1f30a} שלום \u{202e}",
        "\"quoted\" \\ \u{1}\u{2028}</script>",
        "{\"name\": \"get_weather\"}",
        "1",
    ];
    prop_oneof![
        4 => select(known.to_vec()).prop_map(str::to_owned),
        2 => "[a-zäß,.\n]{0,12}x",
        1 => Just(String::new()),
    ]
}

fn said() -> impl Strategy<Value = String> {
    words().prop_filter("says something", |words| !words.is_empty())
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(|it| json!(it)),
        select(vec![
            json!(u64::MAX),
            json!(i64::MIN),
            json!(9_007_199_254_740_993_u64),
            json!(0)
        ]),
        select(vec![json!(-0.5), json!(1.0), json!(1e300), json!(0.1)]),
        words().prop_map(|it| json!(it)),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::Array),
            any_object(inner).prop_map(Value::Object),
        ]
    })
}

fn any_object(value: impl Strategy<Value = Value>) -> impl Strategy<Value = JsonObject> {
    let key = select(vec!["city", "größe", "a b", "\u{1f511}", "type", "$ref"]);
    let fields = vec((key, value), 0..4);
    fields.prop_map(|fields| {
        let fields = fields
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value));
        fields.collect::<Map<_, _>>()
    })
}

fn any_minter() -> impl Strategy<Value = Minter> {
    select(vec![
        Minter::Nobody,
        Minter::Own,
        Minter::Own,
        Minter::Other,
    ])
}

fn any_piece() -> impl Strategy<Value = Piece> {
    (any::<bool>(), words(), any_minter()).prop_map(|(is_reasoning, text, minter)| Piece {
        is_reasoning,
        text,
        minter,
    })
}

fn any_shown() -> impl Strategy<Value = Shown> {
    let title = || select(vec![None, Some("trip.pdf"), Some("Größe \"1\".txt")]);
    prop_oneof![
        4 => words().prop_map(Shown::Text),
        1 => any::<bool>().prop_map(|at| Shown::Image { at }),
        1 => (any::<bool>(), title()).prop_map(|(at, title)| Shown::Pdf { at, title }),
        1 => (0..WORDS.len(), title()).prop_map(|(number, title)| Shown::Words { number, title }),
    ]
}

fn any_call() -> impl Strategy<Value = Call> {
    let input = prop_oneof![1 => Just(JsonObject::new()), 4 => any_object(any_value())];
    let data = prop_oneof![
        any_object(any_value()).prop_map(Value::Object),
        vec(any_value(), 0..3).prop_map(Value::Array),
    ];
    let gave = prop_oneof![
        3 => words().prop_map(|words| Gave::Words(vec![words])),
        1 => vec(said(), 2..4).prop_map(Gave::Words),
        1 => Just(Gave::Words(Vec::new())),
        1 => data.clone().prop_map(Gave::Data),
        1 => data.prop_map(Gave::Both),
        2 => said().prop_map(Gave::Failure),
    ];
    let minter = select(vec![
        Minter::Nobody,
        Minter::Own,
        Minter::Own,
        Minter::Own,
        Minter::Other,
    ]);
    (
        select(IDS.to_vec()),
        select(NAMES.to_vec()),
        input,
        minter,
        gave,
    )
        .prop_map(|(id, name, input, minter, gave)| Call {
            id,
            name,
            input,
            minter,
            gave,
        })
}

fn any_round() -> impl Strategy<Value = Round> {
    let step = (
        vec(any_piece(), 0..4),
        vec(any_call(), 1..4),
        proptest::option::weighted(0.1, said()),
    );
    let step = step.prop_map(|(pieces, calls, after)| Step {
        pieces,
        calls,
        after,
    });
    let late = proptest::option::weighted(0.1, words());
    (
        late,
        vec(any_shown(), 1..4),
        vec(step, 0..3),
        vec(any_piece(), 0..4),
    )
        .prop_map(|(late, said, steps, answer)| Round {
            late,
            said,
            steps,
            answer,
        })
}

pub(crate) fn any_draft() -> impl Strategy<Value = Draft> {
    let tools = prop::sample::subsequence(vec![0, 1, 2], 0..=3);
    (
        vec(words(), 0..3),
        vec(any_round(), 1..4),
        tools,
        0..6_usize,
    )
        .prop_map(|(instructions, rounds, tools, choice)| Draft {
            instructions,
            rounds,
            tools,
            choice,
        })
}
