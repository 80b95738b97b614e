import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import type { Page } from 'playwright-core'
import { onTestFinished } from 'vitest'
import type { TestOptions, TestService } from '../../src/testing/index.ts'
import { consoleService } from './browser.ts'

/** The service at http://localhost, because passkeys need a host name; it must know its origin before it listens. */
export async function serviceOnLocalhost(options: TestOptions = {}): Promise<TestService> {
  let port = 0
  const server = createServer((socket) => {
    const onward = connect(port, '127.0.0.1')
    socket.on('error', () => onward.destroy())
    onward.on('error', () => socket.destroy())
    socket.pipe(onward).pipe(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://localhost:${(server.address() as AddressInfo).port}`
  const test = await consoleService({ public_url: url, ...options })
  port = Number(new URL(test.url).port)
  onTestFinished(async () => {
    server.close()
    await test.close()
  })
  return { ...test, url }
}

/** Gives the browser of a page a device with user verification, which succeeds while `isUser`. */
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
