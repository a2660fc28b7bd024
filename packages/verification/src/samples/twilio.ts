import type { Moment, Sample, Samples } from "./Sample.ts"

const account = "AC00000000000000000000000000000000"

const event = (name: string, body: (now: Moment) => ReturnType<Sample["body"]>): Sample => ({
  event: name,
  headers: (now) => ({ "i-twilio-idempotency-token": now.uuid(), "user-agent": "TwilioProxy/1.1" }),
  body
})

const place = (side: "From" | "To") => ({
  [`${side}City`]: "SAN FRANCISCO",
  [`${side}Country`]: "US",
  [`${side}State`]: "CA",
  [`${side}Zip`]: "94103"
})

export const twilio: Samples = {
  type: "TWILIO",
  documentation: "https://www.twilio.com/docs/messaging/guides/webhook-request",
  posts: "form",
  samples: [
    event("message.received", (now) => {
      const sid = `SM${now.hex(32)}`
      return {
        MessageSid: sid,
        SmsSid: sid,
        SmsMessageSid: sid,
        AccountSid: account,
        From: "+14155550100",
        To: "+14155550101",
        Body: "Hello & welcome",
        NumMedia: "0",
        NumSegments: "1",
        SmsStatus: "received",
        ApiVersion: "2010-04-01",
        ...place("From"),
        ...place("To")
      }
    }),
    event("message.delivered", (now) => {
      const sid = `SM${now.hex(32)}`
      return {
        MessageSid: sid,
        SmsSid: sid,
        AccountSid: account,
        From: "+14155550101",
        To: "+14155550100",
        MessageStatus: "delivered",
        SmsStatus: "delivered",
        ApiVersion: "2010-04-01"
      }
    }),
    event("call.incoming", (now) => ({
      CallSid: `CA${now.hex(32)}`,
      AccountSid: account,
      From: "+14155550100",
      To: "+14155550101",
      Caller: "+14155550100",
      Called: "+14155550101",
      CallStatus: "ringing",
      Direction: "inbound",
      ApiVersion: "2010-04-01",
      ...place("From"),
      ...place("To")
    }))
  ]
}
