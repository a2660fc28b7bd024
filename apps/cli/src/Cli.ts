import { Command } from "effect/cli"
import { bulk } from "./commands/bulk.ts"
import { deleting } from "./commands/delete.ts"
import { exporting } from "./commands/export.ts"
import { importing } from "./commands/import.ts"
import { listen } from "./commands/listen.ts"
import { login, logout } from "./commands/login.ts"
import { pull } from "./commands/pull.ts"
import { events, requests } from "./commands/records.ts"
import { retry } from "./commands/retry.ts"
import { send } from "./commands/send.ts"
import { tail } from "./commands/tail.ts"
import { trigger } from "./commands/trigger.ts"
import { workflows } from "./commands/workflows.ts"
import { Team, Url } from "./Gateway.ts"
import { Json } from "./Output.ts"

export const tidegate = Command.make("tidegate").pipe(
  Command.withDescription(
    "Operates a Tidegate gateway from a shell. Exit codes and files are described in cli.md. On the machine of a gateway there are also: start, doctor, backup, restore and admin"
  ),
  Command.withSubcommands([
    login,
    logout,
    listen,
    send,
    trigger,
    tail,
    pull,
    requests,
    events,
    retry,
    bulk,
    deleting,
    exporting,
    importing,
    workflows
  ]),
  Command.withGlobalFlags([Json, Url, Team])
)
