//! The model registry: documents over the catalog, and providers registered at run time.

use std::path::Path;
use std::sync::Arc;

use pinch_coding_agent::models::{ModelRegistry, ProviderDefinition};
use pinch_llm::ids::ProviderId;
use pinch_llm::model::ImageLimits;
use serde_json::{Map, Value, json};

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn load(document: Value) -> (ModelRegistry, Vec<String>) {
    let (registry, problems) = ModelRegistry::from_document(object(document), Path::new("m.json"));
    (registry, problems.into_iter().map(|problem| problem.to_string()).collect())
}

fn config(document: Value) -> ProviderDefinition {
    ProviderDefinition { document: object(document), ..ProviderDefinition::default() }
}

fn ids(registry: &ModelRegistry, provider: &str) -> Vec<String> {
    registry.models(&provider.into()).iter().map(|model| model.id.to_string()).collect()
}

#[test]
fn only_invalid_parts_are_skipped() {
    let (registry, problems) = load(json!({"providers": {
        "a": {"baseUrl": "http://a", "api": "openai-completions", "models": [
            {"id": "good"}, {"id": ""}, {"id": "no-window", "contextWindow": 0}, 5, {"id": "typed", "reasoning": "yes"},
            {"id": "price", "cost": {"input": 1}}, {"id": "level", "thinkingLevelMap": {"off": 3}},
        ]},
        "b": {"baseUrl": 7},
        "c": [],
        "d": {"api": "openai-completions", "models": [{"id": "m"}]},
        "e": {"baseUrl": "http://e", "models": [{"id": "no-api"}, {"id": "api", "api": "openai-responses"}]},
        "f": {"apiKey": "k"},
        "groq": {"modelOverrides": {"openai/gpt-oss-120b": {"name": "Mine"}, "x": {"input": ["smell"]}}},
        "xai": {"compat": {"supportsStore": "maybe"}},
    }}));
    let places: Vec<&str> = problems.iter().map(|p| p.split(": ").next().unwrap()).collect();
    assert_eq!(
        places,
        [
            "m.json:providers.a.models.1.id",
            "m.json:providers.a.models.2",
            "m.json:providers.a.models.3",
            "m.json:providers.a.models.4.reasoning",
            "m.json:providers.a.models.5.cost.output",
            "m.json:providers.a.models.6.thinkingLevelMap.off",
            "m.json:providers.b.baseUrl",
            "m.json:providers.c",
            "m.json:providers.d",
            "m.json:providers.e.models.0",
            "m.json:providers.f",
            "m.json:providers.groq.modelOverrides.x.input.0",
            "m.json:providers.xai.compat.supportsStore",
        ]
    );
    assert_eq!(ids(&registry, "a"), ["good"]);
    assert_eq!(ids(&registry, "e"), ["api"]);
    assert_eq!(registry.find(&"groq".into(), "openai/gpt-oss-120b").unwrap().name, "Mine");
    assert!(!registry.models(&"xai".into()).is_empty());
    let error = registry.error().unwrap();
    assert!(error.starts_with(
        "Invalid models.json schema:\n  - providers.a.models.1.id: must not have fewer than 1 characters\n"
    ));
    assert!(
        error.contains("\nProvider \"d\": Provider d: \"baseUrl\" is required when defining custom models."),
        "{error}"
    );
    assert!(!error.contains("supportsStore"));
}

#[test]
fn image_limits_apply_per_model_and_are_validated() {
    let limits = |resize: Value| json!({"images": {"resize": resize}});
    let resize = |resize: Value| json!({"inputLimits": limits(resize)});
    let with = |id: &str, resize: Value| json!({"id": id, "inputLimits": limits(resize)});
    let (registry, problems) = load(json!({"providers": {
        "a": {"baseUrl": "http://a", "api": "openai-completions", "models": [
            with("small", json!({"maxWidth": 300, "jpegQuality": 55})),
            with("w", json!({"maxWidth": 0})),
            with("h", json!({"maxHeight": -1, "maxBytes": "4MB"})),
            with("q", json!({"jpegQuality": 101})),
            with("r", json!(7)),
            {"id": "i", "inputLimits": {"images": []}},
            {"id": "l", "inputLimits": null},
            {"id": "usual", "inputLimits": {"maxRequestBytes": 9}},
            {"id": "n", "inputLimits": {"images": {"maxPerMessage": 0, "maxPerRequest": "many"}}},
            {"id": "counted", "inputLimits": {"images": {"maxPerMessage": 2, "maxPerRequest": 9}}},
        ]},
        "groq": {"modelOverrides": {
            "openai/gpt-oss-120b": resize(json!({"maxHeight": 40})), "openai/gpt-oss-20b": resize(json!({"maxHeight": 0})),
        }},
    }}));
    let left_out = |at: &str, what: &str| format!("m.json:providers.a.models.{at}: {what}. The model is ignored");
    assert_eq!(
        problems,
        [
            left_out("1.inputLimits.images.resize.maxWidth", "must be >= 1"),
            left_out("2.inputLimits.images.resize.maxHeight", "must be >= 1"),
            left_out("2.inputLimits.images.resize.maxBytes", "must be number"),
            left_out("3.inputLimits.images.resize.jpegQuality", "must be <= 100"),
            left_out("4.inputLimits.images.resize", "must be object"),
            left_out("5.inputLimits.images", "must be object"),
            left_out("6.inputLimits", "must be object"),
            left_out("8.inputLimits.images.maxPerMessage", "must be >= 1"),
            left_out("8.inputLimits.images.maxPerRequest", "must be number"),
            "m.json:providers.groq.modelOverrides.openai/gpt-oss-20b.inputLimits.images.resize.maxHeight: must be >= 1. \
             The override is ignored"
                .to_owned(),
        ]
    );
    assert_eq!(ids(&registry, "a"), ["small", "usual", "counted"]);
    let counts = registry.find(&"a".into(), "counted").unwrap().image_counts();
    assert_eq!((counts.per_message, counts.per_request), (Some(2), Some(9)));
    let of = |provider: &str, id: &str| registry.find(&provider.into(), id).unwrap().image_limits();
    let usual = ImageLimits::default();
    assert_eq!(of("a", "small"), ImageLimits { max_width: 300, jpeg_quality: 55, ..usual });
    assert_eq!(of("a", "usual"), usual);
    assert_eq!(of("groq", "openai/gpt-oss-120b"), ImageLimits { max_height: 40, ..usual });
    assert_eq!(of("groq", "openai/gpt-oss-20b"), usual);

    let described = |resize: Value| {
        config(json!({"baseUrl": "http://e", "api": "openai-completions", "models": [with("m", resize)]}))
    };
    registry.register_provider("ext", described(json!({"maxBytes": 5000}))).unwrap();
    assert_eq!(of("ext", "m"), ImageLimits { max_encoded_bytes: 5000, ..usual });
    let error = registry.register_provider("bad", described(json!({"maxBytes": 0}))).unwrap_err();
    assert_eq!(error.to_string(), "Provider bad: config.models.0.inputLimits.images.resize.maxBytes must be >= 1");
}

#[test]
fn a_document_changes_the_catalog() {
    let old = ModelRegistry::builtin();
    let provider = ProviderId::from("groq");
    let before = old.find(&provider, "openai/gpt-oss-120b").unwrap();
    let (registry, problems) = load(json!({"$schema": "s", "providers": {
        "groq": {
            "name": "My Groq", "baseUrl": "http://mine", "compat": {"supportsStore": true},
            "models": [{"id": "own"}, {"id": "openai/gpt-oss-20b", "api": "openai-responses"}],
            "modelOverrides": {"openai/gpt-oss-120b": {"cost": {"input": 9}, "maxTokens": 5, "thinkingLevelMap": {"low": "l"}}, "none": {}},
        },
        "azure-openai-responses": {"baseUrl": "http://az"},
    }}));
    assert_eq!(problems, [""; 0]);
    let model = registry.find(&provider, "openai/gpt-oss-120b").unwrap();
    assert_eq!((model.rates.input, model.rates.output), (9.0, before.rates.output));
    assert_eq!((model.max_tokens, model.base_url.as_str()), (5, "http://mine"));
    let replaced = registry.find(&provider, "openai/gpt-oss-20b").unwrap();
    assert_eq!(
        (replaced.api.as_str(), replaced.context_window, replaced.rates.input),
        ("openai-responses", 128_000, 0.0)
    );
    let mut expected: Vec<String> = ids(&old, "groq");
    expected.push("own".into());
    assert_eq!(ids(&registry, "groq"), expected);
    assert_eq!(registry.display_name(&provider), "My Groq");
    for name in ["azure", "azure-openai-responses"] {
        assert!(registry.models(&name.into()).iter().all(|model| model.base_url == "http://az"));
    }
    assert_eq!(registry.display_name(&"azure-openai-responses".into()), "Azure OpenAI Responses");
    assert_eq!(registry.display_name(&"mine".into()), "mine");
}

#[test]
fn providers_can_be_registered_and_removed() {
    let (registry, _) = load(json!({"providers": {
        "groq": {"modelOverrides": {"dyn": {"name": "Overridden"}}}, "p": {"baseUrl": "http://p", "api": "x", "models": [{"id": "of-document"}]},
    }}));
    let other = registry.clone();
    let before = ids(&registry, "groq");
    let with_models =
        json!({"baseUrl": "http://d", "api": "openai-completions", "models": [{"id": "dyn"}], "headers": {"a": "b"}});
    registry.register_provider("groq", config(with_models)).unwrap();
    assert_eq!(ids(&other, "groq"), ["dyn"], "all clones are the same registry");
    assert_eq!(other.find(&"groq".into(), "dyn").unwrap().name, "Overridden", "overrides reach such models");
    // Invalid definitions change nothing.
    let bad = [
        (json!({"models": [{"id": "m", "contextWindow": 0}]}), "Provider groq, model m: invalid contextWindow"),
        (json!({"models": [{"name": "m"}]}), "Provider groq: config.models.0.id must have required properties id"),
        (json!({"apiKey": 5}), "Provider groq: config.apiKey must be string"),
    ];
    for (document, text) in bad {
        assert_eq!(registry.register_provider("groq", config(document)).unwrap_err().to_string(), text);
        assert_eq!(ids(&registry, "groq"), ["dyn"]);
    }
    // Registered again in part: the rest stays in effect.
    registry.register_provider("groq", config(json!({"baseUrl": "http://e"}))).unwrap();
    assert_eq!(registry.find(&"groq".into(), "dyn").unwrap().base_url, "http://e");
    registry.unregister_provider("groq");
    assert_eq!(ids(&registry, "groq"), before);
    // Without models, existing ones are moved.
    registry.register_provider("p", config(json!({"baseUrl": "http://q"}))).unwrap();
    assert_eq!(registry.find(&"p".into(), "of-document").unwrap().base_url, "http://q");
    let without_url = registry.register_provider("new", config(json!({"api": "x", "models": [{"id": "m"}]})));
    assert_eq!(
        without_url.unwrap_err().to_string(),
        "Provider new: \"baseUrl\" is required when defining custom models."
    );
    let without_api = registry.register_provider("new", config(json!({"baseUrl": "u", "models": [{"id": "m"}]})));
    assert_eq!(
        without_api.unwrap_err().to_string(),
        "Provider new, model m: no \"api\" specified. Set at provider or model level."
    );
    assert!(!registry.providers().contains(&"new".into()));
}

#[test]
fn a_document_is_reloaded() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("models.json");
    let (registry, problems) = ModelRegistry::load(&path);
    assert_eq!((problems, registry.error()), (vec![], None));
    let write = |name: &str| {
        let provider = json!({"baseUrl": "http://a", "api": "x", "models": [{"id": name}]});
        std::fs::write(&path, format!("\u{feff}{}", json!({"providers": {"a": provider}}))).unwrap();
    };
    registry.register_provider("d", config(json!({"baseUrl": "u", "api": "x", "models": [{"id": "m"}]}))).unwrap();
    write("one");
    assert_eq!(registry.refresh(), []);
    assert_eq!((ids(&registry, "a"), ids(&registry, "d")), (vec!["one".to_owned()], vec!["m".to_owned()]));
    std::fs::write(&path, "{half").unwrap();
    assert_eq!(registry.refresh().len(), 1);
    assert_eq!(ids(&registry, "a"), ["one"], "the last good list stays");
    assert!(registry.error().unwrap().starts_with("Failed to parse models.json: "));
    std::fs::remove_file(&path).unwrap();
    assert_eq!((registry.refresh(), registry.error()), (vec![], None));
    assert!(ids(&registry, "a").is_empty());
}

#[test]
fn readers_see_a_change_completely() {
    let registry = ModelRegistry::builtin();
    let many = |name: &str| {
        let models: Vec<Value> = (0..50).map(|n| json!({"id": format!("m{n}"), "name": name})).collect();
        config(json!({"baseUrl": "http://x", "api": "x", "models": models}))
    };
    registry.register_provider("p", many("a")).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..200 {
                registry.register_provider("p", many(if n % 2 == 0 { "a" } else { "b" })).unwrap();
            }
        });
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..2_000 {
                    let models = registry.models(&"p".into());
                    assert!(models.len() == 50 && models.iter().all(|model| model.name == models[0].name));
                }
            });
        }
    });
}

#[test]
fn an_empty_document_allocates_nothing() {
    let registry = ModelRegistry::builtin();
    let (a, b) = (registry.models(&"openrouter".into()), registry.clone().models(&"openrouter".into()));
    assert!(Arc::ptr_eq(&a, &b), "a list is made once");
    let model = registry.find(&"openrouter".into(), a[a.len() - 1].id.as_str()).unwrap();
    assert!(Arc::ptr_eq(&model, &a[a.len() - 1]));
}

/// Creates a document too long to be parsed as a whole, with mistakes in it.
fn long_document() -> Value {
    let models = |n: usize| (0..n).map(|m| json!({"id": format!("m{m}"), "name": "n".repeat(80)})).collect::<Vec<_>>();
    let provider = |url: &str, models: Vec<Value>| json!({"baseUrl": url, "api": "openai-completions", "apiKey": "$KEY", "models": models});
    let mut broken = models(300);
    broken[7] = json!({"id": 7});
    json!({"providers": {
        "a": provider("http://a", models(3_000)),
        "wrong": {"baseUrl": 7, "models": models(2)},
        "b": provider("http://b", broken),
        "list": {"baseUrl": "http://l", "models": {}},
        "groq": {"baseUrl": "http://g", "modelOverrides": {"openai/gpt-oss-120b": {"name": "Mine", "headers": {"x": "y"}}, "x": 5}},
        "no-url": {"api": "x", "models": [{"id": "m"}]},
    }})
}

#[test]
fn only_the_requested_part_of_a_long_document_is_parsed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("models.json");
    let document = long_document();
    std::fs::write(&path, format!("\u{feff}{document:#}")).unwrap();
    let (registry, at_once) = ModelRegistry::load(&path);
    let places = |problems: Vec<pinch_coding_agent::document::Problem>| {
        problems.into_iter().filter_map(|problem| problem.at).collect::<Vec<_>>()
    };
    assert_eq!(places(at_once), ["providers.wrong.baseUrl", "providers.list.models", "providers.no-url"]);
    assert!(registry.find(&"a".into(), "m2999").is_some());
    assert_eq!(places(registry.take_new_problems()), [""; 0]);
    assert!(registry.find(&"b".into(), "m8").is_some() && registry.find(&"b".into(), "m7").is_none());
    assert_eq!(places(registry.take_new_problems()), ["providers.b.models.7.id"]);
    assert_eq!(places(registry.take_new_problems()), [""; 0], "nothing is told twice");

    // In the end the result is the same as if parsed as a whole.
    let (whole, problems) = ModelRegistry::from_document(object(document), &path);
    assert_eq!(registry.problems(), problems);
    assert_eq!(registry.error(), whole.error());
    assert_eq!(registry.providers(), whole.providers());
    let records = |registry: &ModelRegistry| registry.all().iter().map(|model| model.to_record()).collect::<Vec<_>>();
    assert_eq!(records(&registry), records(&whole));
    assert_eq!(registry.find(&"groq".into(), "openai/gpt-oss-120b").unwrap().name, "Mine");
}

#[test]
fn a_long_document_may_contain_comments_and_lone_surrogates() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("models.json");
    for text in [
        format!("// mine\n{}", long_document()),
        long_document().to_string().replacen("\"nnn", "\"\\ud83dnnn", 1),
        long_document().to_string().replacen("http://b", "http://\\ud83d", 1),
    ] {
        std::fs::write(&path, &text).unwrap();
        let (registry, _) = ModelRegistry::load(&path);
        assert_eq!((ids(&registry, "a").len(), ids(&registry, "b").len()), (3_000, 299), "{}", &text[..20]);
    }
    std::fs::write(&path, &long_document().to_string()[1..]).unwrap();
    let (registry, problems) = ModelRegistry::load(&path);
    assert_eq!(problems.len(), 1);
    assert!(registry.error().unwrap().starts_with("Failed to parse models.json: "));
}

#[test]
fn custom_models_that_think_are_sent_their_earlier_thinking() {
    let (registry, _) = load(json!({"providers": {
        "a": {"baseUrl": "http://a", "api": "openai-completions", "apiKey": "k", "models": [
            {"id": "thinks", "reasoning": true}, {"id": "plain"},
            {"id": "forgets", "reasoning": true, "compat": {"transcript": {"dropEarlierThinking": true}}},
        ]},
        "groq": {"baseUrl": "http://b"},
    }}));
    let forgets = |registry: &ModelRegistry, provider: &str| -> Vec<bool> {
        let models = registry.models(&provider.into());
        models.iter().map(|model| model.dialect.history.transcript.forget_thinking).collect()
    };
    assert_eq!(forgets(&registry, "a"), [false, true, true]);
    assert!(forgets(&registry, "groq").iter().all(|forgets| *forgets), "models of the catalog");
    registry.register_provider("a", config(json!({"baseUrl": "http://c"}))).unwrap();
    assert_eq!(forgets(&registry, "a"), [false, true, true]);
}
