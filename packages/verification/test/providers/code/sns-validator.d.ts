/** The validator of AWS, which comes without types. */
declare module "sns-validator" {
  const MessageValidator: new () => {
    readonly validate: (message: object, done: (error: Error | null) => void) => void
  }
  export default MessageValidator
}
