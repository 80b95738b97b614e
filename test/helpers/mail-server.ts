import { once } from 'node:events'
import type { AddressInfo, Socket } from 'node:net'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'

/** A message as a mail server received it. */
type Received = { from: string; to: string[]; raw: string; text: string; link: string | undefined }

export type MailServer = {
  /** `smtp://127.0.0.1:port` */
  url: string
  port: number
  received: Received[]
  /** Cuts every connection. */
  cut(): void
  close(): Promise<void>
}

/** A mail server that speaks real SMTP and keeps what it receives; `options` say what it refuses. */
export async function mailServer(options: SMTPServerOptions = {}, host = '127.0.0.1'): Promise<MailServer> {
  const received: Received[] = []
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    disableReverseLookup: true,
    onData(stream, session, done) {
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', () => {
        const { mailFrom, rcptTo } = session.envelope
        const raw = Buffer.concat(chunks).toString()
        const text = unquoted(raw)
        const [link] = /http\S+#ticket=secret_svc_ticket_[\w-]{43}/.exec(text) ?? []
        received.push({
          from: mailFrom === false ? '' : mailFrom.address,
          to: rcptTo.map(({ address }) => address),
          ...{ raw, text, link },
        })
        done()
      })
    },
    ...options,
  })
  // Ignored, because some tests are about clients that give up.
  server.on('error', () => {})
  const listening = server.listen(0, host)
  await once(listening, 'listening')
  const { port } = listening.address() as AddressInfo
  return {
    ...{ url: `smtp://${host}:${port}`, port, received },
    cut: () => {
      for (const { _socket } of (server as unknown as { connections: Set<{ _socket: Socket }> }).connections)
        _socket.destroy()
    },
    close: () => new Promise((resolve) => server.close(() => resolve())),
  }
}

/** Decodes quoted-printable. */
const unquoted = (raw: string): string =>
  Buffer.from(
    raw
      .replace(/=\r?\n/g, '')
      .replace(/=([0-9A-F]{2})/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16))),
    'latin1',
  ).toString()
