import { expect } from "vitest"
import { Webhook } from "standardwebhooks"
import { it } from "../support/it.ts"

/** A signing secret is rotated without a delivery that its receiver would refuse. */

const headersOf = (headers: Readonly<Record<string, string | ReadonlyArray<string> | undefined>>) => ({
  "webhook-id": String(headers["webhook-id"]),
  "webhook-timestamp": String(headers["webhook-timestamp"]),
  "webhook-signature": String(headers["webhook-signature"])
})

it("Deliveries are signed with the new and the former secret as soon as the rotation returns", async ({
  gateway,
  target
}) => {
  const former = await gateway.signingSecret()
  const { source } = await gateway.route(target, { destination: { auth_type: "SERVICE_SIGNATURE" } })
  const deliver = async () => {
    target.reset()
    await fetch(`${gateway.origin}/e/${source.id}`, { method: "POST", body: '{"n":1}' })
    return gateway.eventually("the delivery", async () => target.received[0] ?? null)
  }
  const verifies = (secret: string, { body, headers }: Awaited<ReturnType<typeof deliver>>): boolean => {
    try {
      new Webhook(secret, { format: "raw" }).verify(body.toString(), headersOf(headers))
      return true
    } catch {
      return false
    }
  }
  const before = await deliver()
  expect(verifies(former, before)).toBe(true)

  const rotated = await gateway.call("POST", "/project-secrets/rotate", { rotate: ["signing_secret"] })
  expect(rotated.status).toBe(200)
  const { value: current, whsec_value: asLibrariesTakeIt } = rotated.body.signing_secret
  const after = await deliver()
  expect([verifies(current, after), verifies(former, after)]).toEqual([true, true])
  expect(new Webhook(asLibrariesTakeIt).verify(after.body.toString(), headersOf(after.headers))).toEqual({ n: 1 })

  // Nothing that was secret has come into what is kept or logged.
  const logged = await gateway.logged()
  const [row] = await gateway.sql("select row_to_json(p)::text as row from project_secrets p where team_id = $1", [
    gateway.team
  ])
  for (const secret of [former, current, asLibrariesTakeIt]) expect(logged + row.row).not.toContain(secret)
})
