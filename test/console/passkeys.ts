import { once } from 'node:events'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Page } from 'playwright-core'
import { onTestFinished } from 'vitest'
import type { TestOptions, TestService } from '../../src/testing/index.ts'
import { consoleService } from './browser.ts'

/** The service at http://localhost, as passkeys need a name. Its port is known before it starts. */
export async function serviceOnLocalhost(options: TestOptions = {}): Promise<TestService> {
  let target = ''
  const server = createServer((incoming, outgoing) => {
    const { method = 'GET', headers, url } = incoming
    const forwarded = request(target + url, { method, headers }, (reply) => {
      outgoing.writeHead(reply.statusCode ?? 502, reply.headers)
      reply.pipe(outgoing)
    })
    forwarded.on('error', () => outgoing.destroy())
    incoming.pipe(forwarded)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://localhost:${(server.address() as AddressInfo).port}`
  const test = await consoleService({ public_url: url, ...options })
  target = test.url
  onTestFinished(async () => {
    server.close()
    server.closeAllConnections()
    await test.close()
  })
  return { ...test, url }
}

/** Gives the browser of a page a device with a check of its user, which succeeds while `isUser`. */
export async function addDevice(page: Page) {
  const devtools = await page.context().newCDPSession(page)
  await devtools.send('WebAuthn.enable')
  const { authenticatorId } = await devtools.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  })
  return {
    isUser: (isUserVerified: boolean) =>
      devtools.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified }),
  }
}
