//! A mark in the environment of a command, which all its descendants inherit.

#[cfg(target_os = "linux")]
pub(super) use linux::{Carries, ProcessMark};

/// No mark: the environment of other processes cannot be read here.
#[cfg(not(target_os = "linux"))]
#[derive(Clone, Debug)]
pub(super) struct ProcessMark;

#[cfg(not(target_os = "linux"))]
impl ProcessMark {
    pub(super) fn put_on(_: &mut std::process::Command) -> Self {
        Self
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io::Read as _;
    use std::process::Command;

    use uuid::Uuid;

    /// Maximum number of ids of enclosing commands, one for each nested program.
    const MAX_OUTER: usize = 64;
    /// Maximum bytes of an environment that are read: by default, the system allows no more for arguments and environment together.
    const MAX_ENVIRONMENT: u64 = 2 * 1024 * 1024;

    /// The id of one command.
    #[derive(Clone, Debug)]
    pub(in super::super) struct ProcessMark(String);

    /// Whether a process carries a mark.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(in super::super) enum Carries {
        Yes,
        No,
        /// It has ended meanwhile, or is executing another program.
        Unclear,
    }

    impl ProcessMark {
        /// The variable with the ids of a command and its enclosing commands, colon-separated, innermost last.
        pub(in super::super) const VARIABLE: &str = "PINCH_PROCESS";

        /// Marks a command. Marks that were explicitly set are kept, because their owner must find the command too. Marks inherited from
        /// this process are not visible here, but are covered.
        pub(in super::super) fn put_on(command: &mut Command) -> Self {
            let mark = Uuid::new_v4().simple().to_string();
            let given =
                command.get_envs().find(|(name, _)| *name == Self::VARIABLE).and_then(|(_, value)| value?.to_str());
            let mut ids: Vec<&str> = given.unwrap_or_default().split(':').filter(|id| is_id(id)).collect();
            ids.drain(..ids.len().saturating_sub(MAX_OUTER));
            ids.push(&mark);
            let value = ids.join(":");
            command.env(Self::VARIABLE, value);
            Self(mark)
        }

        /// Returns the id: 32 hexadecimal digits.
        pub(in super::super) fn id(&self) -> &str {
            &self.0
        }

        /// Returns whether a process started its program with this mark. Reading its environment may block.
        pub(in super::super) fn of(&self, process: u32) -> Carries {
            let file = match std::fs::File::open(format!("/proc/{process}/environ")) {
                Ok(file) => file,
                // It belongs to another user.
                Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => return Carries::No,
                Err(_) => return Carries::Unclear,
            };
            let mut environment = Vec::new();
            match file.take(MAX_ENVIRONMENT).read_to_end(&mut environment) {
                Ok(1..) if self.is_in(&environment) => Carries::Yes,
                Ok(1..) => Carries::No,
                Ok(0) | Err(_) => Carries::Unclear,
            }
        }

        /// Returns whether the variable in an environment contains this id.
        fn is_in(&self, environment: &[u8]) -> bool {
            let mut variables = environment.split(|byte| *byte == 0);
            variables.any(|variable| {
                let value = variable.strip_prefix(Self::VARIABLE.as_bytes()).and_then(|rest| rest.strip_prefix(b"="));
                value.is_some_and(|value| value.split(|byte| *byte == b':').any(|id| id == self.0.as_bytes()))
            })
        }
    }

    fn is_id(text: &str) -> bool {
        text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        fn value(command: &Command) -> String {
            let (_, value) = command.get_envs().find(|(name, _)| *name == ProcessMark::VARIABLE).unwrap();
            value.unwrap().to_str().unwrap().to_owned()
        }

        fn environment(command: &Command) -> Vec<u8> {
            format!("A=b\0{}={}\0Z=\0", ProcessMark::VARIABLE, value(command)).into_bytes()
        }

        #[test]
        fn a_command_carries_the_ids_of_all_around_it() {
            let mut outer = Command::new("true");
            let outer_mark = ProcessMark::put_on(&mut outer);
            let mut inner = Command::new("true");
            inner.env(ProcessMark::VARIABLE, value(&outer));
            let inner_mark = ProcessMark::put_on(&mut inner);
            assert!(outer_mark.is_in(&environment(&outer)) && !inner_mark.is_in(&environment(&outer)));
            assert!(outer_mark.is_in(&environment(&inner)) && inner_mark.is_in(&environment(&inner)));
            assert!(!inner_mark.is_in(&environment(&inner)[..40]));
        }

        #[test]
        fn invalid_ids_are_dropped_and_the_oldest_ones_are_evicted() {
            let mut command = Command::new("true");
            let given: Vec<String> = (0..200).map(|n| format!("{n:032x}")).collect();
            command.env(ProcessMark::VARIABLE, format!("{}:a word:{}", "x".repeat(200_000), given.join(":")));
            let ProcessMark(own) = ProcessMark::put_on(&mut command);
            let wanted: Vec<&str> = given[136..].iter().map(String::as_str).chain([own.as_str()]).collect();
            assert_eq!(value(&command).split(':').collect::<Vec<_>>(), wanted);
        }

        #[test]
        fn a_missing_process_is_unclear() {
            let mark = ProcessMark::put_on(&mut Command::new("true"));
            assert_eq!(mark.of(u32::MAX), Carries::Unclear);
            assert_eq!(mark.of(std::process::id()), Carries::No);
        }
    }
}
