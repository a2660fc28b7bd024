import { createHmac } from "node:crypto"
import { FakeProviderServer } from "./FakeProviderServer.ts"
import type { Body, Gateway } from "./Gateway.ts"
import type { Reply, Target } from "./Target.ts"

/*
 * A team as a shop would have it, with something on every page of the dashboard: for pictures.
 */

export const slack = "https://slack.com"

const stripeSecret = "whsec_of_the_shop"
const gitSecret = "secret-of-the-repository"

const answering =
  (status: number, text: string): Reply =>
  (response) =>
    void response.writeHead(status, { "content-type": "application/json" }).end(text)

const customers = ["Ada", "Grace", "Alan", "Edsger", "Barbara", "Donald"]
const goods = ["Tea", "Coffee", "Cocoa", "Sugar", "Milk"]

const orderOf = (number: number) => ({
  type: number % 4 === 0 ? "order.created" : "order.paid",
  order: `order-${1000 + number}`,
  customer: customers[number % customers.length],
  country: ["DE", "FR", "US"][number % 3],
  total: 20 + ((number * 37) % 480),
  items: [{ name: goods[number % goods.length], count: 1 + (number % 3) }]
})

const hexOf = (secret: string, text: string): string => createHmac("sha256", secret).update(text).digest("hex")

const send = async (url: string, body: string, headers: Readonly<Record<string, string>> = {}): Promise<string> => {
  const answer = await fetch(url, { method: "POST", headers: { "content-type": "application/json", ...headers }, body })
  return ((await answer.json()) as { readonly request_id: string }).request_id
}

const payment = (url: string, number: number, secret = stripeSecret) => {
  const { customer, total } = orderOf(number)
  const body = JSON.stringify({
    id: `evt_${number}`,
    object: "event",
    type: "charge.succeeded",
    data: { customer, total }
  })
  const at = Math.floor(Date.now() / 1000)
  return send(url, body, { "stripe-signature": `t=${at},v1=${hexOf(secret, `${at}.${body}`)}` })
}

const push = (url: string, number: number) => {
  const body = JSON.stringify({
    ref: "refs/heads/main",
    repository: { full_name: "acme/shop" },
    commits: [{ id: number }]
  })
  return send(url, body, { "x-hub-signature-256": `sha256=${hexOf(gitSecret, body)}`, "x-github-event": "push" })
}

const transformation = `// Adds the tenant, and takes out what the warehouse must not see.
addHandler("transform", (request) => {
  const { body, headers } = request
  headers["x-tenant"] = process.env.TENANT
  body.weight = body.items.reduce((sum, { count }) => sum + count * 250, 0)
  delete body.customer
  console.log("weight", body.weight)
  return request
})
`

const steps = [
  {
    id: "by_size",
    kind: "branch",
    name: "By size",
    config: {
      evaluation: "first",
      paths: [
        { key: "large", rule: "conditions", conditions: { trigger: { body: { total: { $gte: 300 } } } } },
        { key: "usual", rule: "fallback" }
      ]
    }
  },
  { id: "approval", kind: "wait", name: "Approval", config: { for: "approval", amount: 8, unit: "hours" } }
]
const edges = [
  { source_type: "trigger", target_step_id: "by_size" },
  { source_type: "step", source_step_id: "by_size", source_port: "path_large", target_step_id: "approval" },
  { source_type: "step", source_step_id: "by_size", source_port: "path_usual", target_step_id: "ship" },
  { source_type: "step", source_step_id: "approval", source_port: "out", target_step_id: "ship" },
  { source_type: "step", source_step_id: "ship", source_port: "out", target_step_id: "book" }
]

/** Gives the users of a team names of people. */
const baptize = async (gateway: Gateway): Promise<void> => {
  const names = ["Ada Moss", "Grace Field", "Alan Brook"]
  const users = await gateway.sql("select user_id from memberships where team_id = $1 order by role desc, user_id", [
    gateway.team
  ])
  for (const [index, { user_id }] of users.entries()) {
    const name = names[index] ?? `Member ${index}`
    const email = `${name.toLowerCase().replace(" ", ".")}@acme.example`
    await gateway.sql("update users set name = $2, email = $3 where id = $1", [user_id, name, email])
  }
  await gateway.sql("update teams set name = 'Acme shop' where id = $1", [gateway.team])
}

/** Channels of a provider: one that works, and one that the provider has refused, with an alert. */
const providers = async (gateway: Gateway, forge: FakeProviderServer) => {
  const account = await gateway.api("POST", "/provider-accounts/credentials/connect", {
    provider_key: "git_host",
    name: "Release bot",
    base_url: forge.address,
    credentials: { token: "a-token" }
  })
  const channel = (name: string, repository: string) =>
    gateway.api("POST", "/sources", {
      name,
      type: "PROVIDER",
      config: {
        provider: {
          provider_key: "git_host",
          definition_key: "push",
          provider_account_id: account.id,
          inputs: { repository }
        }
      }
    })
  const works = await channel("Pushes to the shop", "acme/shop")
  await gateway.eventually("a channel works", async () => {
    await forge.flush()
    return (await gateway.api("GET", `/sources/${works.id}`)).channel?.status === "active" ? true : null
  })
  forge.provider.refuse(403, { path: /hooks/, times: 10_000 })
  const refused = await channel("Pushes to the billing", "acme/billing")
  await gateway.eventually("an alert is open", async () => {
    const { models } = await gateway.api("GET", "/sources/channel-alerts")
    return models.length > 0 ? true : null
  })
  return { account, refused }
}

/**
 * Fills a team. `rounds`: how often the traffic is sent, with `pause` between, so that charts show more than one minute.
 */
export const fill = async (
  gateway: Gateway,
  startTarget: (usual?: Reply) => Promise<Target>,
  forge: FakeProviderServer,
  { pause, rounds }: { readonly rounds: number; readonly pause: () => Promise<void> }
) => {
  const owner = await gateway.session("owner")
  await gateway.session("owner")
  await gateway.session("member")
  await baptize(gateway)
  const asOwner = async (path: string, body: object) => {
    const answer = await gateway.call("POST", path, body, owner)
    if (answer.status >= 300) throw new Error(`${path}: ${JSON.stringify(answer.body)}`)
    return answer.body
  }
  const warehouse = await startTarget(answering(200, '{"stored":true}'))
  let calls = 0
  const accounting = await startTarget((response, request) =>
    (calls++ % 5 === 0 ? answering(503, '{"error":"The ledger is closed for the night."}') : answering(200, "{}"))(
      response,
      request
    )
  )
  const source = (name: string, type = "WEBHOOK", config: object = {}) =>
    gateway.api("POST", "/sources", { name, type, config })
  const destination = (name: string, config: object, type = "HTTP") =>
    gateway.api("POST", "/destinations", { name, type, config } as never)
  const shop = await source("Shop orders")
  const payments = await source("Stripe payments", "STRIPE", { auth: { webhook_secret_key: stripeSecret } })
  const pushes = await source("GitHub pushes", "GITHUB", { auth: { webhook_secret_key: gitSecret } })
  const toWarehouse = await destination("Warehouse", { url: `${warehouse.origin}/orders`, rate_limit: 50 })
  const toAccounting = await destination("Accounting", { url: `${accounting.origin}/ledger` })
  const toCrm = await destination("Old CRM", { url: "http://127.0.0.1:9/contacts" })
  const toChat = await destination(
    "Sales channel",
    {
      channel: "C0123456789",
      text_template: "Paid: {{payload.data.customer}}",
      auth_type: "CHAT_BOT_TOKEN",
      auth: { bot_token: "xoxb-of-the-shop" }
    },
    "CHAT_BOT"
  )
  const filter = await asOwner("/filters", { name: "paid-orders", body: { type: "order.paid" } })
  await asOwner("/filters", { name: "large-orders", body: { total: { $gte: 300 } } })
  const { id: transformation_id } = await gateway.api("POST", "/transformations", {
    name: "For the warehouse",
    code: transformation,
    env: { TENANT: "acme" }
  })
  const connect = (
    name: string,
    from: { readonly id: string },
    to: { readonly id: string },
    rules: ReadonlyArray<object> = []
  ) => gateway.api("POST", "/connections", { name, source_id: from.id, destination_id: to.id, rules } as never)
  const orders = await connect("Orders to the warehouse", shop, toWarehouse, [
    { type: "deduplicate", window: 60_000, include_fields: ["body.order"] },
    { type: "transform", transformation_id },
    { type: "filter", body: { total: { $gte: 50 } } },
    { type: "retry", strategy: "exponential", count: 5, interval: 60_000 }
  ])
  await connect("Orders to the accounts", shop, toAccounting, [{ type: "filter", filter_id: filter.id }])
  await connect("Customers to the old CRM", shop, toCrm)
  await connect("Payments to the sales channel", payments, toChat)
  const paused = await connect("Pushes to the builds", pushes, toWarehouse)
  await gateway.api("PUT", `/connections/${paused.id}/pause`)
  const workflow = await gateway.api("POST", "/workflows", {
    name: "Large orders need an approval",
    source_id: shop.id,
    status: "active",
    steps: [
      ...steps,
      { id: "ship", kind: "destination", name: "Ship it", resource_id: toWarehouse.id, config: {} },
      { id: "book", kind: "destination", name: "Book it", resource_id: toAccounting.id, config: {} }
    ],
    edges
  } as never)
  const { account, refused } = await providers(gateway, forge)

  let number = 0
  let request = ""
  for (let round = 0; round < rounds; round++) {
    if (round > 0) await pause()
    for (let more = 0; more < 24 + ((round * 17) % 30); more++) {
      number++
      request = await send(`${shop.url}/checkout`, JSON.stringify(orderOf(number)))
      if (number % 3 === 0) await payment(payments.url, number)
      if (number % 9 === 0) await payment(payments.url, number, "whsec_of_somebody_else")
      if (number % 8 === 0) await push(pushes.url, number)
    }
  }
  await gateway.traced(request, 3)
  const failed = await gateway.eventually("an event of the old CRM has failed", async () => {
    const { models } = await gateway.api("GET", `/events?destination_id=${toCrm.id}&status=FAILED&limit=1`)
    return models[0]
  })
  const runOf = (status: string) =>
    gateway.eventually(`a run has the status ${status}`, async () => {
      const { models } = await gateway.api("GET", `/workflows/${workflow.id}/runs?status=${status}&limit=1`)
      return models[0]
    })
  await runOf("succeeded")
  const run = await runOf("running")
  const { body: telling } = await gateway.call("POST", "/workflow-templates/failed-payment-alert/instantiate", {
    name: "Tell of failed payments",
    source_id: payments.id,
    bindings: await bindings(gateway, toChat.id)
  })
  const told = telling.steps.at(-1).id
  // A second version: its page compares both.
  await gateway.api("PATCH", `/workflows/${telling.id}`, {
    version: telling.version,
    steps: [
      ...telling.steps.map((step: Body) => (step.id === told ? { ...step, name: "Tell the sales team" } : step)),
      { id: "breathe", kind: "delay", name: "Wait a minute", config: { mode: "for", amount: 1, unit: "minutes" } }
    ],
    edges: [...telling.edges, { source_type: "step", source_step_id: told, target_step_id: "breathe" }]
  })

  const fixture = await gateway.api("POST", "/request-fixtures", { request_id: request, name: "A large order" })
  const share = await gateway.api("POST", `/requests/${request}/share`, { title: "Order without a weight" })
  await gateway.api("POST", `/requests/${failed.request_id}/share`, { title: "For the makers of the CRM" })
  const { id: bulk } = await gateway.api("POST", "/events/bulk_operations", {
    destination_id: [toCrm.id],
    status: ["FAILED"],
    from: "now-1h",
    confirm: true
  })
  await gateway.eventually("the bulk operation has ended", async () => {
    const { status } = await gateway.api("GET", `/events/bulk_operations/${bulk}`)
    return status === "COMPLETED" ? true : null
  })
  const {
    models: [attempt]
  } = await gateway.api("GET", `/attempts?event_id=${failed.id}`)
  const { data: key } = await asOwner("/project-api-keys", { name: "ci", scopes: ["control:read"] })
  await asOwner("/project-api-keys", { name: "laptop of Alan", scopes: ["tunnel:connect"] })
  await gateway.call("GET", "/sources", undefined, key.api_key)
  await gateway.call("DELETE", `/sources/${shop.id}`, undefined, key.api_key)
  return {
    account: account.id,
    attempt: attempt!.id,
    bulk,
    channel: refused.id,
    connection: orders.id,
    destination: toAccounting.id,
    event: failed.id,
    filter: filter.id as string,
    fixture: fixture.id,
    key: key.id as string,
    owner,
    request,
    run: run.id,
    share: share.token,
    source: shop.id,
    transformation: transformation_id,
    workflow: workflow.id,
    versions: telling.id
  }
}

/** What the template needs, by its own names. */
const bindings = async (gateway: Gateway, destination: string) => {
  const { body } = await gateway.call("GET", "/workflow-templates/failed-payment-alert")
  return Object.fromEntries(body.required_connections.map(({ key }: { readonly key: string }) => [key, destination]))
}
