//! A mark in the environment of a command, which everything that it starts inherits.

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

    /// Ids of commands around this one that are kept: one for each program in a command of another.
    const MAX_OUTER: usize = 64;
    /// Bytes of an environment that are looked at: the system gives arguments and environment together no more, unless configured otherwise.
    const MAX_ENVIRONMENT: u64 = 2 * 1024 * 1024;

    /// The id of one command.
    #[derive(Clone, Debug)]
    pub(in super::super) struct ProcessMark(String);

    /// Whether a process carries a mark.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(in super::super) enum Carries {
        Yes,
        No,
        /// It has ended meanwhile, or is becoming another program.
        Unclear,
    }

    impl ProcessMark {
        /// The variable with the ids of a command and of those around it, the innermost last, with colons between.
        pub(in super::super) const VARIABLE: &str = "PINCH_PROCESS";

        /// Marks a command. Marks that it was given already, by name, stay: who gave them must find it too. What it would inherit from this
        /// process unsaid is not seen here, and is covered.
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

        /// Whether a process began its program with this mark. Its environment may lie in a file that answers late: this may block.
        pub(in super::super) fn of(&self, process: u32) -> Carries {
            let Ok(file) = std::fs::File::open(format!("/proc/{process}/environ")) else {
                // It belongs to another user, or has ended.
                let is_there = std::fs::exists(format!("/proc/{process}")).unwrap_or(true);
                return if is_there { Carries::No } else { Carries::Unclear };
            };
            let mut environment = Vec::new();
            match file.take(MAX_ENVIRONMENT).read_to_end(&mut environment) {
                Ok(1..) if self.is_in(&environment) => Carries::Yes,
                Ok(1..) => Carries::No,
                Ok(0) | Err(_) => Carries::Unclear,
            }
        }

        /// Whether the variable is in an environment with this id.
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
        fn what_is_no_id_is_not_passed_on_and_the_oldest_make_room() {
            let mut command = Command::new("true");
            let given: Vec<String> = (0..200).map(|n| format!("{n:032x}")).collect();
            command.env(ProcessMark::VARIABLE, format!("{}:a word:{}", "x".repeat(200_000), given.join(":")));
            let ProcessMark(own) = ProcessMark::put_on(&mut command);
            let wanted: Vec<&str> = given[136..].iter().map(String::as_str).chain([own.as_str()]).collect();
            assert_eq!(value(&command).split(':').collect::<Vec<_>>(), wanted);
        }

        #[test]
        fn who_is_not_there_is_not_denied() {
            let mark = ProcessMark::put_on(&mut Command::new("true"));
            assert_eq!(mark.of(u32::MAX), Carries::Unclear);
            assert_eq!(mark.of(std::process::id()), Carries::No);
        }
    }
}
