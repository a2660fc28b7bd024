import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Sources whose requests are messages of a broker. The previous version subscribes to nothing: messages wait at their brokers. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})

const statements = [
  // The name of a type that a team may have chosen for an unknown vendor before the gateway used it.
  `update sources set type = 'WEBHOOK', version = version + 1 where type = 'RABBITMQ'`,

  // "version": goes up with each change of what it subscribes to, or as whom. "due_at": when to connect; null: the source is disabled. A
  // subscription that is connected stays due, so that another process finds it after a crash.
  `create table source_subscriptions (
    source_id text collate "C" primary key references sources (id),
    team_id text collate "C" not null references teams (id),
    version bigint not null default 1,
    due_at timestamptz,
    status text not null,
    failures integer not null default 0,
    connected_at timestamptz,
    last_error text,
    last_error_at timestamptz,
    last_message_at timestamptz,
    stored_count bigint not null default 0,
    duplicate_count bigint not null default 0,
    rejected_count bigint not null default 0,
    last_rejection text
  ) with (fillfactor = 50)`,
  `create index source_subscriptions_team on source_subscriptions (team_id)`,

  // "key": the SHA-256 of a message's id and its content. The row stays for some days, to recognise the same message.
  `create table source_messages (
    source_id text collate "C" not null,
    key bytea not null,
    team_id text collate "C" not null references teams (id),
    request_id text collate "C" not null,
    expires_at timestamptz not null,
    primary key (source_id, key)
  )`,
  `create index source_messages_expires on source_messages (expires_at)`,
  `create index source_messages_team on source_messages (team_id)`
]
