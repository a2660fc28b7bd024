import { useQuery } from "@tanstack/react-query"
import { Link, useParams } from "@tanstack/react-router"
import { useState } from "react"
import type { Row } from "../gateway.ts"
import { NewLink } from "../parts/NewLink.tsx"
import { Action } from "../parts/Action.tsx"
import { ChoiceField } from "../parts/Form.tsx"
import { type Column, List } from "../parts/List.tsx"
import { Facts, Panel } from "../parts/Panel.tsx"
import { Failure, Loading } from "../parts/States.tsx"
import { Status } from "../parts/Status.tsx"
import { Read } from "../parts/Table.tsx"
import { Time } from "../parts/Time.tsx"
import { useRole, useSession } from "../session.ts"
import { Connect, useProviders } from "./ConnectAccount.tsx"

type Account = Row<"ProviderAccount">

const onlyOwners = <p className="muted">Only an owner of the team can connect and revoke accounts.</p>

const columns: ReadonlyArray<Column<Account>> = [
  { title: "Status", width: "100px", cell: ({ lifecycle }) => <Status of={lifecycle.state} /> },
  { title: "Name", width: "1.2fr", cell: ({ name }) => <bdi>{name}</bdi> },
  { title: "Provider", width: "1fr", cell: ({ provider_key }) => provider_key },
  { title: "E-mail", width: "1.2fr", cell: ({ email }) => <bdi>{email ?? "–"}</bdi> },
  { title: "Used by", width: "80px", cell: ({ usage }) => usage.total.toLocaleString() },
  { title: "Changed", width: "110px", cell: ({ updated_at }) => <Time at={updated_at} /> }
]

export const Accounts = () => {
  const { client, team } = useSession()
  const { mayOwn } = useRole()
  return (
    <>
      <header>
        <h1>Provider accounts</h1>
        <NewLink to="/accounts/new" call="POST /provider-accounts/credentials/connect">
          Connect an account
        </NewLink>
      </header>
      {mayOwn ? null : onlyOwners}
      <List
        label="Provider accounts"
        keys={["accounts", team]}
        columns={columns}
        to={({ id }) => `/accounts/${id}`}
        read={(page) =>
          client.get("/provider-accounts", {
            params: { query: page }
          })
        }
        empty={
          <p>
            No account is connected. A source of type PROVIDER uses one to read a calendar, a mailbox or a repository in
            somebody's name.
          </p>
        }
      />
    </>
  )
}

export const NewAccount = () => {
  const providers = useProviders()
  const { mayOwn } = useRole()
  const [chosen, setChosen] = useState<string | null>(null)
  const all = (providers.data?.models ?? []).filter(({ auth }) => auth.modes.some((mode) => mode !== "none"))
  const provider = all.find(({ key }) => key === chosen) ?? all[0]
  return (
    <>
      <header>
        <h1>Connect an account</h1>
      </header>
      {!mayOwn ? (
        onlyOwners
      ) : providers.isPending ? (
        <Loading />
      ) : provider === undefined ? (
        <Failure error={providers.error} retry={providers.refetch} />
      ) : (
        <div className="stack">
          <div className="form">
            <ChoiceField
              name="provider"
              label="Provider"
              choices={all.map(({ key, name }) => [key, name])}
              onChoose={setChosen}
            />
            <p className="muted">{provider.description}</p>
          </div>
          <Connect key={provider.key} provider={provider} />
        </div>
      )}
    </>
  )
}

const states: Readonly<Record<string, string>> = {
  expired: "The provider does not renew its token. Connect it again: the channels of its sources wait for that.",
  error:
    "The provider refuses its credentials, or a revocation was interrupted. Connect it again, or repeat the revocation.",
  revoked: "It was revoked. Connect it again to go on with its sources."
}

const ConnectAgain = ({ account }: { readonly account: Account }) => {
  const providers = useProviders()
  if (providers.isPending) return <Loading />
  const provider = providers.data?.models.find(({ key }) => key === account.provider_key)
  if (provider === undefined) return <Failure error={providers.error} retry={providers.refetch} />
  return <Connect account={account} provider={provider} />
}

/** The result of a revocation at the provider. */
const Revoked = ({ of }: { readonly of: Row<"ProviderAccountRevoked"> }) => (
  <div className="notice" role="status">
    {of.provider_revoked ? "The provider has revoked its token. " : "The provider did not revoke its token. "}
    {of.channels_stopped.toLocaleString()} subscriptions were ended
    {of.channels_failed === 0
      ? "."
      : `, and ${of.channels_failed.toLocaleString()} could not be: the provider ends them when they expire.`}
  </div>
)

export const Account = () => {
  const { id = "" } = useParams({ strict: false })
  const { client, team } = useSession()
  const { mayOwn } = useRole()
  const [isConnecting, setConnecting] = useState(false)
  const [end, setEnd] = useState<Row<"ProviderAccountRevoked"> | null>(null)
  const path = { params: { path: { id } } }
  const account = useQuery({
    queryKey: ["account", team, id],
    queryFn: () => client.get("/provider-accounts/{id}", path)
  })
  if (account.isPending) return <Loading />
  if (account.isError) return <Failure error={account.error} retry={account.refetch} />
  const { data } = account
  const { lifecycle, usage } = data
  const advice = states[lifecycle.state]
  return (
    <>
      <header>
        <h1>
          <bdi>{data.name}</bdi>
        </h1>
        <Status of={lifecycle.state} />
        <div className="actions">
          {mayOwn && lifecycle.can_reconnect ? (
            <button type="button" aria-expanded={isConnecting} onClick={() => setConnecting(!isConnecting)}>
              Connect again…
            </button>
          ) : null}
          {mayOwn && lifecycle.can_revoke ? (
            <Action
              call="DELETE /provider-accounts/{id}"
              asks={usage.total === 0 ? "Revoke it?" : `Stop the ${usage.total.toLocaleString()} that use it?`}
              run={async () => setEnd(await client.delete("/provider-accounts/{id}", path))}
            >
              Revoke
            </Action>
          ) : null}
        </div>
      </header>
      {mayOwn ? null : onlyOwners}
      {end === null || lifecycle.state !== "revoked" ? null : <Revoked of={end} />}
      {advice === undefined ? null : <div className="notice">{advice}</div>}
      {isConnecting ? (
        <Panel title="Connect again">
          <ConnectAgain key={data.updated_at} account={data} />
        </Panel>
      ) : null}
      <Panel title="Account">
        <Facts
          of={[
            ["Provider", data.provider_key],
            ["E-mail", data.email === null ? undefined : <bdi>{data.email}</bdi>],
            [
              "Id at the provider",
              data.external_account_id === null ? undefined : <bdi className="mono">{data.external_account_id}</bdi>
            ],
            ["Connected by", data.connection === "oauth2" ? "a consent" : "credentials"],
            [
              "API",
              <bdi key="api" className="mono">
                {data.base_url}
              </bdi>
            ],
            ["Scopes", data.scopes.length === 0 ? undefined : <bdi>{data.scopes.join(", ")}</bdi>],
            [
              "Token ends",
              data.token_expires_at === null ? undefined : <Time key="token" at={data.token_expires_at} precise />
            ],
            ["Last error", data.last_error === null ? undefined : <bdi>{data.last_error}</bdi>],
            ["Id", <code key="id">{id}</code>],
            ["Created", <Time key="created" at={data.created_at} precise />]
          ]}
        />
      </Panel>
      <Panel title="Used by">
        <Facts
          of={[
            ["Sources", usage.sources.toLocaleString()],
            ["Actions", usage.actions.toLocaleString()],
            ["Workflows", usage.workflows.toLocaleString()],
            ["Choices in forms", usage.lookups.toLocaleString()]
          ]}
        />
        <Read name={`sources of ${id}`} read={() => client.get("/sources/channels")}>
          {({ models }) => {
            const sources = models.filter(({ channel }) => channel.provider_account?.id === id)
            return sources.length === 0 ? (
              <p className="muted">No source has a channel with it.</p>
            ) : (
              <ul className="plain">
                {sources.map(({ channel, name, source_id }) => (
                  <li key={source_id}>
                    <Link to={`/channels/${source_id}`}>
                      <bdi>{name}</bdi>
                    </Link>{" "}
                    <Status of={channel.status} />
                  </li>
                ))}
              </ul>
            )
          }}
        </Read>
      </Panel>
    </>
  )
}
