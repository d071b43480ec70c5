//! Conversations that nobody named, such as those of a server with its clients.

use super::*;

/// Tools that are others each time somebody looks, and a tool that counts.
struct Growing {
    catalogs: Mutex<Vec<ToolCatalog>>,
    calls: AtomicUsize,
}

impl Growing {
    fn of(catalogs: &[&[&str]]) -> Arc<dyn ToolHost> {
        let catalogs = catalogs.iter().rev().map(|names| ToolCatalog {
            tools: offered(names),
            problems: Vec::new(),
        });
        Arc::new(Self {
            catalogs: Mutex::new(catalogs.collect()),
            calls: AtomicUsize::new(0),
        })
    }
}

#[async_trait]
impl ToolHost for Growing {
    async fn tools(&self) -> ToolCatalog {
        self.catalogs.lock().unwrap().pop().unwrap()
    }

    async fn call(&self, _: ToolCall) -> Result<ToolOutput, ToolCallError> {
        let number = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        Ok(ToolOutput::text(format!("result {number}")))
    }

    fn changes(&self) -> ToolHostChanges {
        Box::pin(stream::pending())
    }
}

fn offered(names: &[&str]) -> Vec<Arc<ToolDefinition>> {
    let tool = |name: &&str| ToolDefinition::new(*name, "", json!({"type": "object"}));
    names.iter().map(|name| Arc::new(tool(name))).collect()
}

fn names(catalog: &ToolCatalog) -> Vec<&str> {
    catalog.tools.iter().map(|it| it.name.as_str()).collect()
}

/// What a client says, and what was said before.
fn request(said: &[&str], tools: &[&str]) -> ChatRequest {
    let mut request = ChatRequest::new(said.iter().map(|text| Message::user(*text)));
    request.tools = offered(tools);
    request
}

async fn ask(model: &Arc<dyn ChatModel>, request: &ChatRequest) -> Result<String, String> {
    let answer = model.complete(request).await;
    answer
        .map(|answer| answer.message.text())
        .map_err(|error| error.to_string())
}

async fn call(host: &Arc<dyn ToolHost>) -> String {
    let call = ToolCall {
        name: "number".to_owned(),
        ..ToolCall::default()
    };
    host.call(call).await.unwrap().content[0].as_text()
}

/// Both ends of one conversation.
fn ends(player: &Player) -> (Arc<dyn ChatModel>, Arc<dyn ToolHost>) {
    let model = player.model(&player.models()[0]).unwrap();
    (model, player.tools().unwrap())
}

/// Two clients asked the same, and were told different things.
async fn two_alike() -> Paper {
    let paper = Paper::default();
    let recorder = Recorder::new(paper.clone(), "test", Scrubber::default()).unwrap();
    let model = Scripted::saying(|_, asked| Ok(says(&[&format!("answer {asked}")])));
    let host = Growing::of(&[&["number"], &["number"]]);
    for (track, first) in [("run 1", "answer 0"), ("run 2", "answer 2")] {
        let recorder = recorder.track(track);
        let (model, host) = (
            recorder.model(Arc::clone(&model)),
            recorder.tools(Arc::clone(&host)),
        );
        host.tools().await;
        let begun = ask(&model, &request(&["Hello"], &["number"])).await;
        assert_eq!(begun.unwrap(), first);
        let result = call(&host).await;
        let then = request(&["Hello", first, &result], &["number"]);
        ask(&model, &then).await.unwrap();
    }
    paper
}

#[tokio::test]
async fn a_conversation_goes_on_as_the_one_that_it_began_as() {
    let player = two_alike().await.player();
    let (one, two) = (player.conversation(), player.conversation());
    let ((model, host), (other_model, other_host)) = (ends(&one), ends(&two));
    let hello = request(&["Hello"], &["number"]);
    assert_eq!(ask(&model, &hello).await.unwrap(), "answer 0");
    assert_eq!(ask(&other_model, &hello).await.unwrap(), "answer 2");
    // The call is the same, and the other one is first.
    assert_eq!(call(&other_host).await, "result 2");
    assert_eq!(call(&host).await, "result 1");
    let then = request(&["Hello", "answer 2", "result 2"], &["number"]);
    assert_eq!(ask(&other_model, &then).await.unwrap(), "answer 3");
    let then = request(&["Hello", "answer 0", "result 1"], &["number"]);
    assert_eq!(ask(&model, &then).await.unwrap(), "answer 1");
    assert_eq!(player.left(), 0);
    let (third, _) = ends(&player.conversation());
    let told = ask(&third, &hello).await.unwrap_err();
    assert!(told.contains("all its answers were given"), "{told}");
    assert!(told.contains("start anew"), "{told}");
}

#[tokio::test]
async fn what_was_decided_otherwise_is_found_in_another_conversation() {
    let player = two_alike().await.player();
    let (model, host) = ends(&player.conversation());
    // A run that goes on calls before it asks.
    assert_eq!(call(&host).await, "result 1");
    let then = request(&["Hello", "answer 2", "result 2"], &["number"]);
    assert_eq!(ask(&model, &then).await.unwrap(), "answer 3");
    // And what was given is told apart from what never was there.
    let told = ask(&model, &then).await.unwrap_err();
    assert!(told.contains("was given already"), "{told}");
    let told = ask(&model, &request(&["Bye"], &["number"])).await;
    let told = told.unwrap_err();
    assert!(told.contains("now `\"Bye\"`"), "{told}");
}

#[tokio::test]
async fn in_their_order_each_conversation_has_one_of_its_own() {
    let player = two_alike().await.player().with_matching(Matching::Order);
    let ((one, _), (two, host)) = (ends(&player.conversation()), ends(&player.conversation()));
    let today = request(&["It is Monday"], &[]);
    assert_eq!(ask(&one, &today).await.unwrap(), "answer 0");
    assert_eq!(ask(&two, &today).await.unwrap(), "answer 2");
    assert_eq!(call(&host).await, "result 2");
    assert_eq!(ask(&one, &today).await.unwrap(), "answer 1");
    // What is left is the other one's.
    assert!(ask(&one, &today).await.is_err());
    assert_eq!(ask(&two, &today).await.unwrap(), "answer 3");
}

#[tokio::test]
async fn tools_that_came_later_are_there_once_it_is_known_who_asks() {
    let paper = Paper::default();
    let recorder = Recorder::new(paper.clone(), "test", Scrubber::default()).unwrap();
    let model = Scripted::saying(|_, asked| Ok(says(&[&format!("answer {asked}")])));
    let host = Growing::of(&[&["early"], &["early", "late"]]);
    for (track, question, tools) in [
        ("run 1", "One", &["early", "mine"][..]),
        ("run 2", "Two", &["early", "late", "mine"]),
    ] {
        let recorder = recorder.track(track);
        let model = recorder.model(Arc::clone(&model));
        recorder.tools(Arc::clone(&host)).tools().await;
        for said in [&[question][..], &[question, "and", "then"]] {
            ask(&model, &request(said, tools)).await.unwrap();
        }
    }
    let player = paper.player();
    let (model, host) = ends(&player.conversation());
    assert_eq!(names(&host.tools().await), ["early"]);
    // Whoever offers none, or another one of its own, asks something else.
    for other in [&[][..], &["early", "yours"], &["mine"]] {
        let told = ask(&model, &request(&["Two"], other)).await.unwrap_err();
        assert!(told.contains("differs in"), "{told}");
    }
    let two = ask(&model, &request(&["Two"], &["early", "mine"])).await;
    assert_eq!(two.unwrap(), "answer 2");
    assert_eq!(names(&host.tools().await), ["early", "late"]);
    // From then on tools count.
    let then = |tools: &[&str]| request(&["Two", "and", "then"], tools);
    assert!(ask(&model, &then(&["early", "mine"])).await.is_err());
    let all = ask(&model, &then(&["early", "late", "mine"])).await;
    assert_eq!(all.unwrap(), "answer 3");
}

/// What was not recorded stays in the conversation, and what was asked after it is not what was recorded.
#[tokio::test]
async fn a_question_that_got_no_answer_is_named_as_what_is_in_the_way() {
    let paper = Paper::default();
    let recorder = Recorder::new(paper.clone(), "test", Scrubber::default()).unwrap();
    let model = recorder.model(Scripted::saying(|_, _| Ok(says(&["Yes."]))));
    ask(&model, &request(&["One"], &[])).await.unwrap();
    let player = paper.player();
    let model = player.model(&player.models()[0]).unwrap();
    let told = ask(&model, &request(&["Zero"], &[])).await.unwrap_err();
    assert!(!told.contains("/new"), "{told}");
    let told = ask(&model, &request(&["Zero", "One"], &[])).await;
    let told = told.unwrap_err();
    assert!(
        told.contains("got no answer") && told.contains("/new"),
        "{told}"
    );
    assert_eq!(ask(&model, &request(&["One"], &[])).await.unwrap(), "Yes.");
}

#[tokio::test]
async fn what_is_missing_is_not_kept_for_ever() {
    let player = two_alike().await.player();
    let (model, _) = ends(&player.conversation());
    let bye = request(&["Bye"], &[]);
    for _ in 0..1_010 {
        assert!(ask(&model, &bye).await.is_err());
    }
    assert_eq!(player.missed().len(), 1_000);
}
