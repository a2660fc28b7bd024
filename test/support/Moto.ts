import { AwsClient } from "aws4fetch"
import { type ChildProcess, spawn } from "node:child_process"
import { freePort } from "./Ports.ts"
import { waitUntil } from "./Waiting.ts"

/**
 * Amazon's services as moto imitates them. It checks the signature and the rights of every call after the first ones, which make the users.
 * `MOTO_SERVER` is its program (`pip install "moto[server]"`, then `MOTO_SERVER=$(which moto_server)`): it is no part of the project.
 */

const program = process.env["MOTO_SERVER"]

/** Why there is none; null: there is one. */
export const motoIsMissing: string | null =
  program === undefined ? 'MOTO_SERVER is not set: pip install "moto[server]"' : null

export const motoRegion = "eu-central-1"

/** A key, as the `auth` of a destination. */
export interface MotoKey {
  readonly access_key_id: string
  readonly secret_access_key: string
}

type Members = Readonly<Record<string, unknown>>

/** The members of answers that suites read. Each answer has some of them. */
interface Answered {
  readonly QueueUrl: string
  readonly Attributes: Readonly<Record<string, string>>
  readonly Messages?: ReadonlyArray<MotoMessage>
  readonly ShardIterator: string
  readonly Records: ReadonlyArray<{ readonly Data: string; readonly PartitionKey: string }>
}

export interface MotoMessage {
  readonly Body: string
  readonly Attributes: Readonly<Record<string, string>>
  readonly MessageAttributes: Readonly<Record<string, { readonly DataType: string; readonly StringValue: string }>>
}

/** The calls that make users and their keys, and a role. */
const unsignedCalls = 7

const targets = {
  sqs: ["1.0", "AmazonSQS"],
  events: ["1.1", "AWSEvents"],
  kinesis: ["1.1", "Kinesis_20131202"]
} as const

export const startMoto = async () => {
  const port = await freePort()
  const child: ChildProcess = spawn(program ?? "moto_server", ["-H", "127.0.0.1", "-p", String(port)], {
    env: { ...process.env, INITIAL_NO_AUTH_ACTION_COUNT: String(unsignedCalls) },
    stdio: "ignore"
  })
  // A start that fails is never closed.
  process.once("exit", () => child.kill("SIGKILL"))
  const origin = `http://127.0.0.1:${port}`
  await waitUntil("moto answers", async () => {
    if (child.exitCode !== null) throw new Error("it has ended")
    return (await fetch(`${origin}/moto-api/`, { signal: AbortSignal.timeout(5_000) })).ok
  })

  const clientOf = ({ access_key_id, secret_access_key }: MotoKey) =>
    new AwsClient({
      accessKeyId: access_key_id,
      secretAccessKey: secret_access_key,
      region: motoRegion,
      retries: 0
    })

  const called = async (key: MotoKey, service: string, headers: Readonly<Record<string, string>>, body: string) => {
    const answer = await clientOf(key).fetch(`${origin}/`, { method: "POST", headers, body, aws: { service } })
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${service}: ${answer.status} ${text}`)
    return text
  }

  /** A call of a service whose protocol is a form. Returns what is in an element of its answer, by the element's name. */
  const formCall = async (key: MotoKey, service: string, params: Readonly<Record<string, string>>) => {
    const type = { "content-type": "application/x-www-form-urlencoded" }
    const text = await called(key, service, type, new URLSearchParams(params).toString())
    return (element: string): string => new RegExp(`<${element}>([^<]*)</${element}>`).exec(text)?.[1] ?? ""
  }

  const nobody: MotoKey = { access_key_id: "AKIAIOSFODNN7EXAMPLE", secret_access_key: "nobody" }
  const iam = (params: Readonly<Record<string, string>>) =>
    formCall(nobody, "iam", { Version: "2010-05-08", ...params })
  const keyOf = async (UserName: string): Promise<MotoKey> => {
    const made = await iam({ Action: "CreateAccessKey", UserName })
    return { access_key_id: made("AccessKeyId"), secret_access_key: made("SecretAccessKey") }
  }
  const PolicyDocument = JSON.stringify({
    Version: "2012-10-17",
    Statement: [{ Effect: "Allow", Action: "*", Resource: "*" }]
  })
  await iam({ Action: "CreateUser", UserName: "gateway" })
  await iam({ Action: "PutUserPolicy", UserName: "gateway", PolicyName: "all", PolicyDocument })
  await iam({ Action: "CreateUser", UserName: "nobody" })
  const key = await keyOf("gateway")
  const keyWithoutRights = await keyOf("nobody")

  const RoleName = "gateway"
  const AssumeRolePolicyDocument = JSON.stringify({
    Version: "2012-10-17",
    Statement: [{ Effect: "Allow", Principal: { AWS: "*" }, Action: "sts:AssumeRole" }]
  })
  const role = (await iam({ Action: "CreateRole", RoleName, AssumeRolePolicyDocument }))("Arn")
  await iam({ Action: "PutRolePolicy", RoleName, PolicyName: "all", PolicyDocument })

  const json = async (service: keyof typeof targets, action: string, members: Members): Promise<Answered> => {
    const [version, prefix] = targets[service]
    const headers = { "content-type": `application/x-amz-json-${version}`, "x-amz-target": `${prefix}.${action}` }
    const text = await called(key, service, headers, JSON.stringify(members))
    return JSON.parse(text === "" ? "{}" : text)
  }

  return {
    origin,
    key,
    keyWithoutRights,
    json,
    /** Accepts this number of next calls without checking their signatures, because moto computes some signatures differently from Amazon. */
    unchecked: async (calls: number): Promise<void> => {
      const answer = await fetch(`${origin}/moto-api/reset-auth`, { method: "POST", body: String(calls) })
      if (!answer.ok) throw new Error(`moto: ${answer.status}`)
    },
    /** The ARN of a role that may do everything. */
    role,
    sns: (params: Readonly<Record<string, string>>) => formCall(key, "sns", { Version: "2010-03-31", ...params }),
    /** Makes a queue, and returns its URL on this server. */
    queue: async (name: string, Attributes: Readonly<Record<string, string>> = {}): Promise<string> => {
      const { QueueUrl } = await json("sqs", "CreateQueue", { QueueName: name, Attributes })
      return new URL(new URL(QueueUrl).pathname, origin).href
    },
    /** How many messages are in a queue. */
    count: async (QueueUrl: string): Promise<number> => {
      const name = "ApproximateNumberOfMessages"
      const { Attributes } = await json("sqs", "GetQueueAttributes", { QueueUrl, AttributeNames: [name] })
      return Number(Attributes[name])
    },
    /** Receives the messages of a queue. */
    messages: async (QueueUrl: string): Promise<ReadonlyArray<MotoMessage>> => {
      const { Messages = [] } = await json("sqs", "ReceiveMessage", {
        QueueUrl,
        MaxNumberOfMessages: 10,
        MessageAttributeNames: ["All"],
        AttributeNames: ["All"]
      })
      return Messages
    },
    close: async () => {
      child.kill("SIGTERM")
      await waitUntil("moto ends", () => child.exitCode !== null || child.signalCode !== null)
    }
  }
}
