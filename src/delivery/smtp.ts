import type { Config } from '../config/config.ts'
import { isLoopbackHost } from '../config/ip.ts'
import { senderOf } from '../config/table-messages.ts'
import { StartError } from '../errors.ts'
import { type Deliver, DeliveryRefused } from '../registry/messages.ts'
import { withAsciiDomain } from '../wire/address.ts'
import { Unreachable } from './deliver.ts'
import type { Texts } from './templates.ts'

/** Delivers by SMTP, with one connection per message. The package is loaded here, only if SMTP is used. */
export async function smtpTransport(config: Config, texts: Texts): Promise<Deliver> {
  const { createTransport } = await loadNodemailer()
  const from = senderOf(config.mail_from as string)
  // A header is ASCII, unlike the sender; the library converts addresses, but no message ids.
  const [, domain] = withAsciiDomain(from.address).split('@')
  const transport = createTransport({
    ...serverOf(config.smtp_url as string),
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  return async (message, { signal }) => {
    const { subject, text, html } = texts(message)
    try {
      await transport.sendMail({
        from,
        // An object, because a text would be read as a list of addresses.
        to: { name: '', address: message.to },
        // The same for every try, so that mail programs show a message once that was delivered twice.
        messageId: `<${message.id}@${domain}>`,
        headers: { 'Auto-Submitted': 'auto-generated' },
        subject,
        text,
        html,
        signal,
      })
    } catch (error) {
      throw signal.aborted ? error : judged(error)
    }
  }
}

/** Requires STARTTLS, except for this machine itself, which may have no certificate. */
function serverOf(smtpUrl: string) {
  const { protocol, hostname, port, username, password } = new URL(smtpUrl)
  const host = hostname.replace(/^\[|\]$/g, '')
  const secure = protocol === 'smtps:'
  const isOwn = isLoopbackHost(host)
  return {
    host,
    secure,
    requireTLS: !secure && !isOwn,
    ignoreTLS: !secure && isOwn,
    ...(port !== '' && { port: Number(port) }),
    ...(username !== '' && {
      auth: { user: decodeURIComponent(username), pass: decodeURIComponent(password) },
    }),
  }
}

/** Tells a permanent refusal of this message from failures that may not happen the next time. */
function judged(error: unknown): Error {
  const { code, responseCode = 0 } = error as { code?: string; responseCode?: number }
  // 530 asks for the login or the encryption that the server does not offer here, whatever the message.
  const isAboutMessage = (code === 'EENVELOPE' && responseCode !== 530) || code === 'EMESSAGE'
  // Without `cause`, because answers of servers quote the address.
  if (isAboutMessage && responseCode >= 500)
    return new DeliveryRefused(`the mail server said ${responseCode}`)
  return new Unreachable(`${code}${responseCode ? ` ${responseCode}` : ''}`)
}

async function loadNodemailer() {
  try {
    return await import('nodemailer')
  } catch (error) {
    throw new StartError(
      'configuration',
      'CELLKEEP_SMTP_URL (option smtp_url) needs the package nodemailer, which is not installed. Run `npm install nodemailer@10`.',
      78,
      { cause: error },
    )
  }
}
