import type { TriggerKind } from "../TriggerKind.ts"

export const schedule: TriggerKind = {
  name: "schedule",
  title: "By a schedule",
  about: "A run begins at certain times. A workflow has at most 10 of them.",
  excludes: [],
  most: 10,
  fields: [
    {
      name: "cron",
      label: "Times",
      kind: "text",
      fresh: "0 9 * * 1-5",
      help: "Five fields: minute, hour, day of the month, month, day of the week. 0 9 * * 1-5 is nine o'clock from Monday to Friday."
    },
    {
      name: "timezone",
      label: "Time zone",
      kind: "text",
      fresh: Intl.DateTimeFormat().resolvedOptions().timeZone,
      isOptional: true,
      help: "A name of the IANA database, such as Europe/Berlin. Empty: UTC."
    },
    {
      name: "missed",
      label: "Times at which nothing ran",
      kind: "choice",
      fresh: "once",
      choices: [
        ["once", "The latest one begins a run"],
        ["skip", "They begin no run"],
        ["all", "Each one begins a run, of the latest 100"]
      ],
      help: "A time is missed when no process ran, or when the workflow was paused."
    }
  ]
}
