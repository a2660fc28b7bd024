import { describe, expect, it, vi } from "@effect/vitest"
import MessageValidator from "sns-validator"
import { sign } from "node:crypto"
import { EventEmitter } from "node:events"
import https from "node:https"
import { bytes, changed, checkOf, fixture, hasCheck, inbound, now, problemOf } from "./inbound.ts"
import { awsCertificate, awsMessages } from "./snsVectors.ts"

const verifyWith = (
  pem: string | undefined,
  message: unknown,
  auth: Readonly<Record<string, string>> = {},
  nowSeconds = now
) =>
  checkOf(
    "AWS_SNS",
    auth,
    () => pem
  )(
    inbound({
      nowSeconds,
      headers: { "content-type": "text/plain; charset=UTF-8" },
      body: typeof message === "string" ? message : JSON.stringify(message)
    })
  )

describe("AWS_SNS messages signed by AWS", () => {
  for (const written of awsMessages) {
    const message = JSON.parse(written)
    const at = Date.parse(message.Timestamp) / 1000

    it(`An SNS message of signature version ${message.SignatureVersion} is verified`, () => {
      expect(verifyWith(undefined, written, {}, at)).toStrictEqual({ certificateUrl: message.SigningCertURL })
      expect(verifyWith(awsCertificate, written, {}, at)).toBe(true)
      expect(verifyWith(awsCertificate, written, { topic_arn: message.TopicArn }, at)).toBe(true)
    })

    it(`An SNS message of signature version ${message.SignatureVersion} is refused when a signed field changes`, () => {
      for (const name of ["Message", "MessageId", "Timestamp", "TopicArn", "Signature", "Type"]) {
        for (const value of [changed(message[name]), "", undefined, null, 1, [message[name]]]) {
          expect(verifyWith(awsCertificate, { ...message, [name]: value }, {}, at), `${name} ${String(value)}`).toBe(
            false
          )
        }
      }
      expect(verifyWith(awsCertificate, { ...message, Subject: "added" }, {}, at)).toBe(false)
      for (const version of ["3", "0", "", 1, 2, undefined, message.SignatureVersion === "1" ? "2" : "1"]) {
        expect(verifyWith(awsCertificate, { ...message, SignatureVersion: version }, {}, at)).toBe(false)
      }
    })

    it(`SNS version ${message.SignatureVersion} is refused from another topic and with an expired certificate`, () => {
      expect(verifyWith(awsCertificate, written, { topic_arn: `${message.TopicArn}2` }, at)).toBe(false)
      expect(verifyWith(awsCertificate, written, {}, Date.parse("2022-08-18T00:00:00Z") / 1000)).toBe(false)
      expect(verifyWith(awsCertificate, written, {}, Date.parse("2021-09-06T00:00:00Z") / 1000)).toBe(false)
    })
  }
})

const pem = fixture("sns.pem")
const certificateUrl =
  "https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-7ff5318490ec183fbaddaa2a969abfda.pem"
const topic = "arn:aws:sns:eu-west-1:123456789012:topic"

const notification = {
  Type: "Notification",
  MessageId: "m-1",
  TopicArn: topic,
  Message: "line one\nline two größe",
  Timestamp: "2030-01-01T00:00:00.000Z"
}
const confirmation = {
  ...notification,
  Type: "SubscriptionConfirmation",
  Token: "2336412f37",
  SubscribeURL: `https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription&TopicArn=${topic}&Token=2336412f37`
}
type Message = Readonly<Record<string, string>>

/** The field lists of https://docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message.html. */
const signed = (message: Message, version: "1" | "2" = "2"): Message => {
  const names =
    message["Type"] === "Notification"
      ? ["Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"]
      : ["Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"]
  const text = names
    .filter((name) => name in message)
    .map((name) => `${name}\n${message[name]}\n`)
    .join("")
  const signature = sign(version === "1" ? "sha1" : "sha256", bytes(text), fixture("signer.key.pem"))
  return {
    ...message,
    SignatureVersion: version,
    Signature: signature.toString("base64"),
    SigningCertURL: certificateUrl
  }
}

/** What the validator of AWS says, with our certificate in place of a download. */
const official = (message: Message): Promise<boolean> =>
  new Promise((resolve) => {
    const get = vi.spyOn(https, "get").mockImplementation(((_url: unknown, answer: (response: unknown) => void) => {
      const response = Object.assign(new EventEmitter(), { statusCode: 200 })
      answer(response)
      response.emit("data", pem)
      response.emit("end")
      return response
    }) as unknown as typeof https.get)
    new MessageValidator().validate({ ...message }, (error) => {
      get.mockRestore()
      resolve(error === null)
    })
  })

describe("AWS_SNS messages and the validator of AWS", () => {
  for (const version of ["1", "2"] as const) {
    it(`SNS signature version ${version} is verified as the validator of AWS verifies it`, async () => {
      for (const message of [notification, { ...notification, Subject: "a subject" }, confirmation]) {
        const good = signed(message, version)
        expect(await official(good)).toBe(true)
        expect(verifyWith(pem, good)).toBe(true)
        for (const bad of [
          { ...good, Message: "other" },
          { ...good, Subject: "other" },
          { ...good, Signature: changed(good["Signature"]!) },
          { ...good, SigningCertURL: certificateUrl.replace(".com/", ".com.evil.test/") }
        ]) {
          // The confirmation has no subject: the validator would sign one, and the documented list does not.
          expect(await official(bad)).toBe(false)
          expect(verifyWith(pem, bad)).toBe(false)
        }
      }
    })
  }

  it("An SNS message may be eight hours and five minutes old, because retries keep its timestamp", () => {
    const at = Date.parse(notification.Timestamp) / 1000
    for (const message of [signed(notification), signed(confirmation)]) {
      for (const [seconds, expected] of [
        [3_600, true],
        [8 * 3_600 + 300, true],
        [8 * 3_600 + 301, false],
        [86_400 * 30, false],
        [-300, true],
        [-301, false]
      ] as const) {
        expect(verifyWith(pem, message, {}, at + seconds), `${seconds} s`).toBe(expected)
      }
    }
    for (const Timestamp of ["", "2030-01-01", "2030-01-01T00:00:00", "2030-13-01T00:00:00Z", String(at)]) {
      expect(verifyWith(pem, signed({ ...notification, Timestamp }), {}, at), Timestamp).toBe(false)
    }
    // Too old, it is not worth a certificate either.
    expect(verifyWith(undefined, signed(notification), {}, at + 86_400)).toBe(false)
  })

  it("An SNS UnsubscribeConfirmation is signed as the documentation says", () => {
    const good = signed({ ...confirmation, Type: "UnsubscribeConfirmation" })
    expect(verifyWith(pem, good)).toBe(true)
    expect(verifyWith(pem, { ...good, Token: "other" })).toBe(false)
    expect(verifyWith(pem, { ...good, Type: "SubscriptionConfirmation" })).toBe(false)
  })

  it("An SNS message with a field that is not signed for its type is refused", () => {
    const good = signed(notification)
    expect(verifyWith(pem, { ...good, SubscribeURL: confirmation.SubscribeURL })).toBe(false)
    expect(verifyWith(pem, { ...good, Token: "t" })).toBe(false)
    expect(
      verifyWith(pem, { ...good, UnsubscribeURL: "https://sns.eu-west-1.amazonaws.com/?Action=Unsubscribe" })
    ).toBe(true)
  })

  it("SNS verification refuses bodies that are not SNS messages, such as raw delivery", () => {
    for (const body of ["", "{", "null", "[]", '"text"', "{}", '{"order":1}', JSON.stringify([signed(notification)])]) {
      expect(verifyWith(pem, body)).toBe(false)
    }
  })
})

describe("AWS_SNS certificate URL", () => {
  const good = signed(notification)
  const file = "/SimpleNotificationService-7ff5318490ec183fbaddaa2a969abfda.pem"

  for (const host of ["us-east-1", "us-gov-west-1", "ap-southeast-7", "af-south-1", "cn-north-1"]) {
    it(`An SNS certificate is fetched from ${host}`, () => {
      const url = `https://sns.${host}.amazonaws.com${host.startsWith("cn") ? ".cn" : ""}${file}`
      expect(verifyWith(undefined, { ...good, SigningCertURL: url })).toStrictEqual({ certificateUrl: url })
    })
  }

  for (const wrong of [
    `http://sns.us-east-1.amazonaws.com${file}`,
    `https://sns.us-east-1.amazonaws.com.evil.test${file}`,
    `https://sns.us-east-1.amazonaws.com.cn.evil.test${file}`,
    `https://evil.test/sns.us-east-1.amazonaws.com${file}`,
    `https://evil.sns.us-east-1.amazonaws.com${file}`,
    `https://sns.amazonaws.com${file}`,
    `https://sns.s3.amazonaws.com${file}`,
    `https://sns.s3-us-west-2.amazonaws.com${file}`,
    `https://sns.s3.us-west-2.amazonaws.com${file}`,
    `https://sqs.us-east-1.amazonaws.com${file}`,
    `https://snsxus-east-1.amazonaws.com${file}`,
    `https://sns.us-east-1.amazonawsxcom${file}`,
    `https://sns.us-east-1.amazonaws.com@evil.test${file}`,
    `https://user:pw@sns.us-east-1.amazonaws.com${file}`,
    `https://sns.us-east-1.amazonaws.com.${file}`,
    `https://SNS.us-east-1.amazonaws.com${file}`,
    `https://sns.US-EAST-1.amazonaws.com${file}`,
    `https://sns.us-east-1.amazonaws.com:443${file}`,
    `https://sns.us-east-1.amazonaws.com:8443${file}`,
    `https://sns.us-east-1.amazonaws.com${file}?x=.pem`,
    `https://sns.us-east-1.amazonaws.com${file}#.pem`,
    `https://sns.us-east-1.amazonaws.com/?Action=Publish&Message=.pem`,
    `https://sns.us-east-1.amazonaws.com/other.pem`,
    `https://sns.us-east-1.amazonaws.com/SimpleNotificationService-x.key`,
    `https://sns.us-east-1.amazonaws.com/evil/..${file}`,
    `https://sns.us-east-1.amazonaws.com\\@evil.test${file}`,
    ` https://sns.us-east-1.amazonaws.com${file}`,
    `https://sns.us-east-1.amazonaws.com${file}\n`,
    "",
    null,
    undefined,
    [`https://sns.us-east-1.amazonaws.com${file}`]
  ]) {
    it(`An SNS certificate is not fetched from ${JSON.stringify(wrong)}`, () => {
      expect(verifyWith(undefined, { ...good, SigningCertURL: wrong })).toBe(false)
      expect(verifyWith(pem, { ...good, SigningCertURL: wrong })).toBe(false)
    })
  }

  it("SNS verification refuses a certificate that is issued to others or invalid", () => {
    expect(verifyWith(pem, good)).toBe(true)
    for (const name of ["sns-foreign", "paypal"]) expect(verifyWith(fixture(`${name}.pem`), good)).toBe(false)
    for (const wrong of ["", "<xml>", fixture("signer.key.pem")]) expect(verifyWith(wrong, good)).toBe(false)
  })

  it("SNS verification fetches no certificate for a message that cannot be valid", () => {
    expect(verifyWith(undefined, good, { topic_arn: `${topic}2` })).toBe(false)
    expect(verifyWith(undefined, { ...good, Signature: "" })).toBe(false)
    expect(verifyWith(undefined, { ...good, Signature: "not base64" })).toBe(false)
    expect(verifyWith(undefined, { ...good, SignatureVersion: "9" })).toBe(false)
    expect(verifyWith(undefined, { ...good, Type: "Other" })).toBe(false)
  })
})

describe("AWS_SNS settings", () => {
  it("SNS settings require no member, and accept only a valid topic ARN", () => {
    expect(hasCheck("AWS_SNS", {})).toBe(true)
    for (const arn of [topic, `${topic}.fifo`, topic.replace("arn:aws:", "arn:aws-us-gov:")]) {
      expect(problemOf("AWS_SNS", "topic_arn", arn)).toBeNull()
    }
    for (const wrong of ["topic", "arn:aws:sqs:eu-west-1:123456789012:q", `${topic}:sub`, `${topic} `]) {
      expect(problemOf("AWS_SNS", "topic_arn", wrong)).not.toBeNull()
    }
  })
})
