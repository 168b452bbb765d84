import { RequestError } from '../../../api/request.ts';
import { isAbort, messageOf } from '../playground-call.ts';
import { StateStore } from '../state-store.ts';

/** A piece of work of a tab that is no chat: an image, a video, speech, a transcript. */
export interface Task<Result> {
  readonly id: number;
  /** What was asked for, to be shown over the result. */
  readonly title: string;
  readonly model: string;
  readonly state: 'running' | 'done' | 'failed' | 'stopped';
  readonly error: string | undefined;
  readonly jobId: string | undefined;
  /** 0 to 1; undefined: it cannot be told. */
  readonly progress: number | undefined;
  readonly startedAt: number;
  readonly result: Result | undefined;
}

export interface TaskState<Form extends object, Result> {
  readonly form: Form;
  /** Newest first. */
  readonly tasks: readonly Task<Result>[];
}

/** Performs a task: reports intermediate state, and returns the result. */
export type Work<Result> = (
  report: (change: Partial<Pick<Task<Result>, 'jobId' | 'progress'>>) => void,
  signal: AbortSignal,
) => Promise<Result>;

/** Maximum number of tasks whose results stay on the page: they contain whole pictures. */
const maxTasks = 20;

/** The form of a tab and its results; tasks continue while another tab is shown. */
export class TaskSession<Form extends object, Result> {
  readonly store: StateStore<TaskState<Form, Result>>;
  readonly #running = new Map<number, AbortController>();
  readonly #release: (result: Result) => void;
  #lastId = 0;

  /** @param release frees a result's resources (a blob URL), when it is removed */
  constructor(form: Form, release: (result: Result) => void = () => {}) {
    this.store = new StateStore<TaskState<Form, Result>>({ form, tasks: [] });
    this.#release = release;
  }

  readonly setForm = (change: Partial<Form>): void => {
    this.store.set({ form: { ...this.store.get().form, ...change } });
  };

  /** Starts a task, which shows its own result or error. */
  async run(title: string, model: string, work: Work<Result>): Promise<void> {
    this.#lastId += 1;
    const id = this.#lastId;
    const running = new AbortController();
    this.#running.set(id, running);
    this.#add({ ...newTask, id, title, model, startedAt: Date.now() });
    try {
      const result = await work((change) => this.#change(id, change), running.signal);
      this.#change(id, { state: 'done', result });
    } catch (error) {
      const jobId = error instanceof RequestError ? error.requestId : undefined;
      if (isAbort(error)) this.#change(id, { state: 'stopped' });
      else this.#change(id, { state: 'failed', error: messageOf(error), ...(jobId !== undefined && { jobId }) });
    } finally {
      this.#running.delete(id);
    }
  }

  stop(id: number): void {
    this.#running.get(id)?.abort();
  }

  /** Removes a task; a running one is stopped. */
  readonly remove = (id: number): void => {
    this.stop(id);
    const { tasks } = this.store.get();
    this.#let(tasks.filter((task) => task.id === id));
    this.store.set({ tasks: tasks.filter((task) => task.id !== id) });
  };

  #add(task: Task<Result>): void {
    const tasks = [task, ...this.store.get().tasks];
    this.#let(tasks.slice(maxTasks));
    this.store.set({ tasks: tasks.slice(0, maxTasks) });
  }

  #let(tasks: readonly Task<Result>[]): void {
    for (const { result } of tasks) if (result !== undefined) this.#release(result);
  }

  #change(id: number, change: Partial<Task<Result>>): void {
    this.store.set({ tasks: this.store.get().tasks.map((task) => (task.id === id ? { ...task, ...change } : task)) });
  }
}

const newTask = {
  state: 'running',
  error: undefined,
  jobId: undefined,
  progress: undefined,
  result: undefined,
} as const;
