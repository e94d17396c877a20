// What DataLoader needs of its worker processes: fatal signals that say something, and the notice that one died.
#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <set>

#include "bindings/names/table.h"

namespace tn::py::names {
namespace {

using Pids = std::map<int64_t, std::set<pid_t>>;  // by the loader's id

Pids& pids() {
  static Pids* all = new Pids();
  return *all;
}

// In a handler only async-signal-safe calls: write the reason, then die of the same signal.
void report_and_die(int signal_number) {
  const char* text = signal_number == SIGBUS
                         ? "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient "
                           "shared memory (shm).\n"
                     : signal_number == SIGSEGV ? "ERROR: Unexpected segmentation fault encountered in worker.\n"
                                                : "ERROR: Unexpected floating-point exception encountered in worker.\n";
  const ssize_t written = write(STDERR_FILENO, text, std::strlen(text));
  static_cast<void>(written);
  struct sigaction standard = {};
  standard.sa_handler = SIG_DFL;
  sigaction(signal_number, &standard, nullptr);
  raise(signal_number);
}

// A worker whose parent is gone was told to end by its own watchdog: that is no failure.
void end_quietly(int, siginfo_t* info, void*) {
  if (info->si_pid == getppid()) _exit(EXIT_SUCCESS);
  struct sigaction standard = {};
  standard.sa_handler = SIG_DFL;
  sigaction(SIGTERM, &standard, nullptr);
  raise(SIGTERM);
}

PyObject* set_signal_handlers(PyObject*, PyObject*) {
  struct sigaction fatal = {};
  fatal.sa_handler = report_and_die;
  fatal.sa_flags = SA_NOCLDSTOP | SA_NODEFER;
  struct sigaction term = {};
  term.sa_sigaction = end_quietly;
  term.sa_flags = SA_RESTART | SA_SIGINFO | SA_NOCLDSTOP | SA_NODEFER;
  if (sigaction(SIGBUS, &fatal, nullptr) || sigaction(SIGSEGV, &fatal, nullptr) || sigaction(SIGFPE, &fatal, nullptr) ||
      sigaction(SIGTERM, &term, nullptr)) {
    return PyErr_SetFromErrno(PyExc_RuntimeError);
  }
  Py_RETURN_NONE;
}

PyObject* set_worker_pids(PyObject*, PyObject* args) {
  long long id = 0;
  PyObject* list = nullptr;
  if (!PyArg_ParseTuple(args, "LO!", &id, &PyTuple_Type, &list)) return nullptr;
  if (pids().count(id) != 0) {
    return PyErr_Format(PyExc_ValueError, "_set_worker_pids should be called only once for each _BaseDataLoaderIter.");
  }
  std::set<pid_t> found;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(list); ++i) {
    const long pid = PyLong_AsLong(PyTuple_GET_ITEM(list, i));
    if (pid == -1 && PyErr_Occurred() != nullptr) return nullptr;
    found.insert(static_cast<pid_t>(pid));
  }
  pids()[id] = found;
  Py_RETURN_NONE;
}

PyObject* remove_worker_pids(PyObject*, PyObject* key) {
  const long long id = PyLong_AsLongLong(key);
  if (id == -1 && PyErr_Occurred() != nullptr) return nullptr;
  if (pids().erase(id) == 0) {
    return PyErr_Format(PyExc_ValueError, "Cannot find worker information for _BaseDataLoaderIter with id %lld", id);
  }
  Py_RETURN_NONE;
}

bool died(pid_t pid, siginfo_t* info) {
  std::memset(info, 0, sizeof *info);
  // WNOWAIT leaves the process to multiprocessing, which collects it.
  if (waitid(P_PID, static_cast<id_t>(pid), info, WEXITED | WNOHANG | WNOWAIT) < 0) return false;
  return (info->si_code == CLD_EXITED && info->si_status != EXIT_SUCCESS) || info->si_code == CLD_KILLED ||
         info->si_code == CLD_DUMPED;
}

PyObject* error_if_any_worker_fails(PyObject*, PyObject*) {
  for (auto& [id, workers] : pids()) {
    for (const pid_t pid : workers) {
      siginfo_t info;
      if (!died(pid, &info)) continue;
      workers.clear();  // one failure is reported once
      if (info.si_code == CLD_EXITED) {
        return PyErr_Format(
            PyExc_RuntimeError,
            "DataLoader worker (pid %ld) exited unexpectedly with exit code %d. Details are lost due to "
            "multiprocessing. Rerunning with num_workers=0 may give better error trace.",
            static_cast<long>(pid), info.si_status);
      }
      return PyErr_Format(PyExc_RuntimeError, "DataLoader worker (pid %ld) is killed by signal: %s. ",
                          static_cast<long>(pid), strsignal(info.si_status));
    }
  }
  Py_RETURN_NONE;
}

PyMethodDef methods[] = {
    {"_set_worker_signal_handlers", set_signal_handlers, METH_NOARGS, nullptr},
    {"_set_worker_pids", set_worker_pids, METH_VARARGS, nullptr},
    {"_remove_worker_pids", remove_worker_pids, METH_O, nullptr},
    {"_error_if_any_worker_fails", error_if_any_worker_fails, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

bool add_worker_functions(PyObject* module) { return PyModule_AddFunctions(module, methods) == 0; }

}  // namespace tn::py::names
