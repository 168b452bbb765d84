import assert from 'node:assert/strict';
import type { TestGateway } from './gateway.ts';
import { makeApiKey } from './make-api-key.ts';

/** A key as operators see it. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into fields of every kind
export type KeyAnswer = Record<string, any> & { readonly id: string };

/** Operators' requests for keys, by an operator key of their own. */
export class AdminKeys {
  readonly #gateway: TestGateway;
  readonly operatorKey: string;

  private constructor(gateway: TestGateway, operatorKey: string) {
    this.#gateway = gateway;
    this.operatorKey = operatorKey;
  }

  static async open(gateway: TestGateway): Promise<AdminKeys> {
    return new AdminKeys(gateway, await makeApiKey(gateway, { kind: 'operator', name: 'operator' }));
  }

  /** Asks for a path below `/admin/v1`. */
  ask(method: string, path: string, body?: unknown, url?: string): Promise<Response> {
    return this.#gateway.fetch(`/admin/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${this.operatorKey}` },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...(url !== undefined && { url }),
    });
  }

  /** The answer's body, its status checked. */
  async answer(status: number, method: string, path: string, body?: unknown): Promise<KeyAnswer> {
    const response = await this.ask(method, path, body);
    const text = await response.text();
    assert.equal(response.status, status, text);
    return JSON.parse(text) as KeyAnswer;
  }

  /** A new key of the first account, or of another; its text is in `key`. */
  create(fields: object = {}, account = 'default'): Promise<KeyAnswer> {
    return this.answer(201, 'POST', `/accounts/${account}/keys`, { name: 'a key', ...fields });
  }

  change(id: string, fields: object): Promise<KeyAnswer> {
    return this.answer(200, 'PATCH', `/keys/${id}`, fields);
  }

  revoke(id: string): Promise<KeyAnswer> {
    return this.answer(200, 'DELETE', `/keys/${id}`);
  }

  rotate(id: string, fields: object = {}): Promise<KeyAnswer> {
    return this.answer(201, 'POST', `/keys/${id}/rotate`, fields);
  }
}
