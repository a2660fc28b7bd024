import { useQuery } from "@tanstack/react-query"
import { Link, useNavigate, useParams } from "@tanstack/react-router"
import { useState } from "react"
import type { Row } from "../gateway.ts"
import { Action } from "../parts/Action.tsx"
import { ChoiceField, Form, TextField, textOf } from "../parts/Form.tsx"
import { type Column, List } from "../parts/List.tsx"
import { Facts, Panel } from "../parts/Panel.tsx"
import { Failure, Loading } from "../parts/States.tsx"
import { Status } from "../parts/Status.tsx"
import { Read } from "../parts/Table.tsx"
import { Time } from "../parts/Time.tsx"
import { useRefresh, useRole, useSession } from "../session.ts"

type Account = Row<"ProviderAccount">
type Provider = Row<"SourceProvider">
type Mode = "oauth2" | "api_key"

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
        <div className="actions">
          {mayOwn ? (
            <Link to="/accounts/new" className="button">
              Connect an account
            </Link>
          ) : null}
        </div>
      </header>
      {mayOwn ? null : onlyOwners}
      <List
        label="Provider accounts"
        keys={["accounts", team]}
        columns={columns}
        to={({ id }) => `/accounts/${id}`}
        read={(cursor) =>
          client.get("/provider-accounts", {
            params: { query: { limit: 100, ...(cursor === null ? {} : { cursor }) } }
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

/** A link that is safe to follow: the gateway has made it of the provider's settings. */
const isWeb = (url: string): boolean => /^https?:\/\//.test(url)

/** Asks for a consent at the provider, which sends the browser back to the gateway. */
const Consent = ({ url }: { readonly url: string }) => (
  <div className="notice" role="status">
    <p>
      {isWeb(url) ? (
        <a href={url} target="_blank" rel="noreferrer noopener">
          Give the consent at the provider
        </a>
      ) : (
        <span className="mono">{url}</span>
      )}{" "}
      within ten minutes, in a new tab. Then confirm it at the gateway, and come back: the account is in{" "}
      <Link to="/accounts">the list</Link>.
    </p>
  </div>
)

/** The fields of one way to connect, for a new account or to connect one again. */
const Connect = ({ account, provider }: { readonly provider: Provider; readonly account?: Account }) => {
  const { client } = useSession()
  const refresh = useRefresh()
  const navigate = useNavigate()
  const { auth } = provider
  const known = account === undefined ? null : account.lifecycle.reconnect_mode === "oauth2" ? "oauth2" : "api_key"
  const modes = auth.modes.filter((one): one is Mode => one !== "none" && (known === null || one === known))
  const [chosen, setMode] = useState<Mode | null>(null)
  const [consent, setConsent] = useState<string | null>(null)
  const mode = chosen ?? modes[0]
  if (mode === undefined) return <p className="muted">{provider.name} needs no account.</p>
  if (consent !== null) return <Consent url={consent} />
  const fields = auth.credential_fields.filter((one) => one.modes.length === 0 || one.modes.includes(mode))
  const optional = (form: HTMLFormElement, name: string) => {
    const value = textOf(form, name)
    return value === "" ? {} : { [name]: value }
  }
  const send = async (form: HTMLFormElement) => {
    const common = {
      provider_key: provider.key,
      ...optional(form, "name"),
      ...optional(form, "base_url"),
      ...(account === undefined ? {} : { account_id: account.id })
    }
    if (mode === "oauth2") {
      const scopes = textOf(form, "scopes")
      const { authorization_url } = await client.post("/provider-accounts/oauth/start", {
        body: {
          ...common,
          client_id: textOf(form, "client_id"),
          ...optional(form, "client_secret"),
          token_auth_method: textOf(form, "token_auth_method") as "client_secret_post",
          ...(scopes === "" ? {} : { scopes: scopes.split(/\s+/) })
        }
      })
      return setConsent(authorization_url)
    }
    const credentials = Object.fromEntries(
      fields.flatMap(({ key }) => {
        const value = textOf(form, `credential.${key}`)
        return value === "" ? [] : [[key, value]]
      })
    )
    const { id } = await client.post("/provider-accounts/credentials/connect", { body: { ...common, credentials } })
    await refresh()
    await navigate({ to: `/accounts/${id}` })
  }
  return (
    <Form
      key={mode}
      label={mode === "oauth2" ? "Ask for the consent" : account === undefined ? "Connect" : "Connect again"}
      send={send}
    >
      {modes.length < 2 ? null : (
        <ChoiceField
          name="mode"
          label="How"
          defaultValue={mode}
          onChoose={(value) => setMode(value as Mode)}
          choices={modes.map((one) => [one, one === "oauth2" ? "Somebody consents (OAuth)" : "With credentials"])}
        />
      )}
      {account === undefined ? (
        <TextField name="name" label="Name" maxLength={155} placeholder={`Ada at ${provider.name}`} />
      ) : null}
      {auth.self_hosted ? (
        <TextField
          name="base_url"
          label="Base URL"
          type="url"
          defaultValue={account?.base_url ?? ""}
          placeholder={auth.base_url ?? ""}
          help="Only for a server that you host yourself."
        />
      ) : null}
      {mode === "api_key" ? (
        fields.map(({ help, key, label, placeholder, required, type }) => (
          <TextField
            key={key}
            name={`credential.${key}`}
            label={label}
            type={type === "secret" ? "password" : "text"}
            required={required}
            placeholder={placeholder ?? ""}
            help={help ?? undefined}
          />
        ))
      ) : (
        <>
          <TextField
            name="client_id"
            label="Client id"
            required
            help="Register a client at the provider. Its redirect URI is the gateway's public URL with /v1/oauth/callback."
          />
          <TextField
            name="client_secret"
            label="Client secret"
            type="password"
            help="Leave it empty for a public client."
          />
          <ChoiceField
            name="token_auth_method"
            label="How the client authenticates"
            choices={[
              ["client_secret_post", "In the body (client_secret_post)"],
              ["client_secret_basic", "In a header (client_secret_basic)"]
            ]}
          />
          <TextField
            name="scopes"
            label="Scopes"
            placeholder={auth.scopes.join(" ")}
            help="Separated by spaces. Left empty: what the provider's triggers need."
          />
        </>
      )}
    </Form>
  )
}

const useProviders = () => {
  const { client, team } = useSession()
  return useQuery({
    queryKey: ["source providers", team],
    queryFn: () => client.get("/source-providers"),
    staleTime: Infinity
  })
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

/** What the end of an account has done at the provider. */
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
