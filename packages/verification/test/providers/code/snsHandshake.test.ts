import { describe, expect, it } from "@effect/vitest"
import { snsHandshake } from "../../../src/Handshakes.ts"
import { inbound } from "./inbound.ts"

const post = (value: unknown) => inbound({ body: JSON.stringify(value) })

describe("AWS_SNS SubscriptionConfirmation", () => {
  const topic = "arn:aws:sns:us-west-2:123456789012:MyTopic"
  const url = (over = {}, host = "sns.us-west-2.amazonaws.com") => {
    const query = Object.entries({ Action: "ConfirmSubscription", TopicArn: topic, Token: "2336412f37", ...over })
    return `https://${host}/?${query.map(([name, value]) => `${name}=${value}`).join("&")}`
  }
  const message = {
    Type: "SubscriptionConfirmation",
    MessageId: "165545c9-2a5c-472c-8df2-7ff2be2b3b1b",
    Token: "2336412f37",
    TopicArn: topic,
    Message: "You have chosen to subscribe to the topic",
    SubscribeURL: url(),
    Timestamp: "2030-01-01T00:00:00.000Z"
  }

  it("An SNS SubscriptionConfirmation with a valid signature is confirmed by its URL", () => {
    expect(snsHandshake(post(message), {})).toStrictEqual({
      kind: "SubscriptionConfirmation",
      status: 200,
      contentType: null,
      body: "",
      needsCheck: true,
      confirmUrl: url()
    })
    const china = url({}, "sns.cn-north-1.amazonaws.com.cn")
    expect(snsHandshake(post({ ...message, SubscribeURL: china }), {})).toHaveProperty("confirmUrl", china)
  })

  for (const wrong of [
    url().replace("https", "http"),
    url({}, "sns.us-west-2.amazonaws.com.evil.test"),
    url({}, "sns.us-west-2.amazonaws.com@evil.test"),
    url({}, "user@sns.us-west-2.amazonaws.com"),
    url({}, "sns.us-west-2.amazonaws.com:8443"),
    url({}, "sns.us-west-2.amazonaws.com."),
    url({}, "SNS.us-west-2.amazonaws.com"),
    url({}, "sns.s3-us-west-2.amazonaws.com"),
    url({}, "sqs.us-west-2.amazonaws.com"),
    url({}, "169.254.169.254"),
    url({ Action: "Unsubscribe" }),
    url({ TopicArn: `${topic}2` }),
    url({ Token: "other" }),
    url({ Extra: "1" }),
    `${url()}&Action=Unsubscribe`,
    `${url()}&Token=2336412f37`,
    `${url()}#x`,
    url().replace("/?", "/x?"),
    url().replace("&Token=2336412f37", ""),
    `${url()}\n`,
    ` ${url()}`,
    "",
    null,
    undefined,
    [url()]
  ]) {
    it(`An SNS SubscriptionConfirmation does not fetch ${JSON.stringify(wrong)}`, () => {
      expect(snsHandshake(post({ ...message, SubscribeURL: wrong }), {})).toBe("refuse")
    })
  }

  it("The SNS handshake ignores notifications and the end of a subscription", () => {
    for (const Type of ["Notification", "UnsubscribeConfirmation", undefined, ["SubscriptionConfirmation"]]) {
      expect(snsHandshake(post({ ...message, Type }), {})).toBeNull()
    }
    expect(snsHandshake({ ...post(message), method: "GET" }, {})).toBeNull()
  })
})
