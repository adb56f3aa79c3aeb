use super::*;

fn rules() -> BindRules {
    let home = Some(PathBuf::from("/home/u"));
    BindRules { roots: vec![PathBuf::from("/home/u")], home, ..BindRules::default() }
}

fn code(rules: &BindRules, bind: &str) -> &'static str {
    rules.check(bind).map_or_else(|refusal| refusal.code(), |()| "ok")
}

#[test]
fn binds_never_expose_system_directories_or_keys() {
    for (bind, expect) in [
        ("/home/u/proj:/data:ro", "ok"),
        ("myvol:/data", "non_absolute"),
        ("../x:/data", "non_absolute"),
        ("/home/u/proj:data", "non_absolute"),
        ("/home/u/proj", "non_absolute"),
        ("/:/host", "covers_root"),
        ("/home/..:/host", "covers_root"),
        ("/etc/passwd:/x", "blocked_path"),
        ("/home/u/../../etc:/x", "blocked_path"),
        ("/etcetera:/x", "outside_roots"),
        ("/var/run/docker.sock:/x", "blocked_path"),
        ("/home/u/.ssh/id:/x", "blocked_path"),
        ("/home/u:/x", "blocked_path"),
        ("/home/v/x:/x", "outside_roots"),
        ("/home/u/proj:/workspace/src", "reserved_target"),
        ("/home/u/proj:/data/../agent", "reserved_target"),
        ("/home/u/proj:/", "reserved_target"),
    ] {
        assert_eq!(code(&rules(), bind), expect, "{bind}");
    }
    let own = BindRules { reserved: vec!["/srv/work".into()], ..rules() };
    for (bind, expect) in [
        ("/home/u/proj:/srv/work/sub", "reserved_target"),
        ("/home/u/proj:/srv", "ok"),
        ("/home/u/proj:/srv/works", "ok"),
    ] {
        assert_eq!(code(&own, bind), expect, "{bind}");
    }
    let open = BindRules { allow_external: true, allow_reserved_targets: true, ..rules() };
    assert_eq!(code(&open, "/srv/x:/workspace/src"), "ok");
    assert_eq!(code(&open, "/var:/x"), "blocked_path", "/var/run is in it");
}

#[cfg(unix)]
#[test]
fn a_bind_through_a_link_is_checked_at_its_target() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    std::os::unix::fs::symlink("/etc", root.join("innocent")).unwrap();
    std::os::unix::fs::symlink("/srv", root.join("elsewhere")).unwrap();
    let rules = BindRules { roots: vec![root.clone()], ..BindRules::default() };
    for (name, expect) in [
        ("innocent", "blocked_path"),
        ("innocent/ssl", "blocked_path"),
        ("innocent/not-there", "blocked_path"),
        ("elsewhere/not-there", "outside_roots"),
        ("new", "ok"),
    ] {
        assert_eq!(code(&rules, &format!("{}:/data", root.join(name).display())), expect, "{name}");
    }
}

#[test]
fn networks_and_profiles_that_open_a_container_are_rejected() {
    for (network, allow_join, expect) in [
        ("none", false, true),
        ("bridge", false, true),
        (" HOST ", true, false),
        ("container:x", false, false),
        ("container:x", true, true),
        ("ns:/proc/1/ns/net", false, false),
    ] {
        assert_eq!(check_network(network, allow_join).is_ok(), expect, "{network}");
    }
    assert!(check_profile("seccomp", "/p.json").is_ok());
    let refusal = check_profile("apparmor", " Unconfined").unwrap_err();
    assert_eq!(refusal.to_string(), "Sandbox security: apparmor profile \" Unconfined\" does not confine anything");
}
