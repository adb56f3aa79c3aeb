//! The fuzz targets, without libFuzzer: every input of the corpus is run.

use std::collections::BTreeSet;
use std::panic::catch_unwind;
use std::path::Path;

use pinch_fuzz::TARGETS;

/// The total size of the corpus, in bytes: it is in every clone.
const MAX_CORPUS: u64 = 300_000;

fn fuzz() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz"))
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    entries.map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned()).collect()
}

#[test]
fn every_target_has_a_program_and_a_corpus() {
    let targets: BTreeSet<String> = TARGETS.iter().map(|target| target.name.to_owned()).collect();
    assert_eq!(names(&fuzz().join("src/bin")), targets);
    assert_eq!(names(&fuzz().join("corpus")), targets);
}

#[test]
fn no_input_of_the_corpus_breaks_a_law() {
    let (mut n_inputs, mut n_bytes, mut broken) = (0, 0, Vec::new());
    for target in TARGETS {
        let check = target.check;
        for options in [&[][..], &[0], &[255; 16]] {
            check(options);
        }
        for entry in std::fs::read_dir(fuzz().join("corpus").join(target.name)).unwrap() {
            let path = entry.unwrap().path();
            let input = std::fs::read(&path).unwrap();
            (n_inputs, n_bytes) = (n_inputs + 1, n_bytes + input.len() as u64);
            if catch_unwind(|| check(&input)).is_err() {
                broken.push(path);
            }
        }
    }
    assert!(broken.is_empty(), "these inputs break a law, see above: {broken:#?}");
    assert!(n_inputs >= 10 * TARGETS.len(), "only {n_inputs} inputs");
    assert!(n_bytes <= MAX_CORPUS, "{n_bytes} bytes; merge the corpus, or remove what is not needed");
}
